#!/usr/bin/env python3
"""Free documentation and code as plain text, for LookaheadKV's training prompts.

Downloads Debian packages with apt-get (nothing is installed), unpacks their text and writes one
file per document below <cache>/data/training_text/<source>/, with a manifest of versions, counts
and one hash. Idempotent.

    python3 scripts/fetch_training_text.py
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import peers

# source: (Debian package, where its text lies, file endings)
SOURCES = {
    "git": ("git-doc", "usr/share/doc/git-doc", (".txt",)),
    "perl": ("perl-doc", "usr/share/perl", (".pod",)),
    "linux": ("linux-doc-6.1", "usr/share/doc/linux-doc-6.1/html/_sources", (".rst.txt",)),
    "python": ("libpython3.11-stdlib", "usr/lib/python3.11", (".py",)),
    "policy": ("debian-policy", "usr/share/doc/debian-policy", (".txt.gz", ".txt")),
    "reference": ("debian-reference-en", "usr/share/debian-reference", (".txt.gz",)),
    "postgresql": ("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", (".html",)),
}
MIN_CHARACTERS = 3_000
MAX_FILES = 700  # per source, by hash of the path, so that no source dominates


def plain_text(path: pathlib.Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    if path.suffix == ".html":
        text = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", " ", text)
        text = re.sub(r"</(p|div|h[1-6]|li|tr|pre|dt|dd)>|<br\s*/?>", "\n", text)
        text = re.sub(r"<[^>]+>", "", text)
        for name, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#8220;", '"'),
                           ("&#8221;", '"'), ("&nbsp;", " "), ("&#160;", " "), ("&amp;", "&")):
            text = text.replace(name, char)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def fetch(package: str, folder: pathlib.Path) -> str:
    subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deb = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder / "x")], check=True)
    return deb.name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=peers.cache_folder(),
                        help="default: KVLAB_CACHE, or ~/.cache/kvlab")
    args = parser.parse_args()
    out = args.cache / "data" / "training_text"
    if (out / "manifest.json").exists():
        return 0
    staging = pathlib.Path(tempfile.mkdtemp(dir=args.cache))
    manifest = {}
    try:
        for source, (package, where, endings) in SOURCES.items():
            with tempfile.TemporaryDirectory() as work:
                work = pathlib.Path(work)
                deb = fetch(package, work)
                root = work / "x" / where
                files = [p for p in sorted(root.rglob("*"))
                         if p.is_file() and not p.is_symlink() and p.name.endswith(endings)]
                files.sort(key=lambda p: hashlib.sha256(
                    str(p.relative_to(root)).encode()).hexdigest())
                kept, digest = 0, hashlib.sha256()
                (staging / "text" / source).mkdir(parents=True)
                for path in files:
                    text = plain_text(path)
                    if len(text) < MIN_CHARACTERS or kept == MAX_FILES:
                        continue
                    name = re.sub(r"[^A-Za-z0-9._-]", "_", str(path.relative_to(root)))
                    (staging / "text" / source / (name + ".txt")).write_text(text)
                    digest.update(text.encode())
                    kept += 1
                if kept == 0:
                    print(f"fetch_training_text: {deb} has no text below {where}",
                          file=sys.stderr)
                    return 1
                manifest[source] = {"package": deb, "files": kept, "sha256": digest.hexdigest()}
        (staging / "text" / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists():
            shutil.rmtree(out)
        (staging / "text").rename(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
