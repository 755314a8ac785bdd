#!/usr/bin/env python3
"""Takes the data of the Python package jieba 0.42.1 (MIT) into the cache folder.

The C++ word segmentation behind LongBench's Chinese metrics reads it from there. The package is
found in this interpreter's path (PyPI jieba==0.42.1) or where Debian's python3-jieba puts it; its
code is not run. Writes dict.txt as it is, the tables of the hidden Markov model as hmm.tsv, and
source.json with the hashes.

    python3 scripts/fetch_jieba.py [--out FOLDER] [--package FOLDER]
"""

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import pathlib
import sys

VERSION = "0.42.1"
# SHA-256 of the files of jieba 0.42.1; PyPI's and Debian's are the same.
HASHES = {
    "dict.txt": "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8",
    "finalseg/prob_start.py": "14c5706ced5cd3b42eb4873d4b88f7f52a7bdf80fbd767bc4423d361e20c5330",
    "finalseg/prob_trans.py": "54dfbc252ed71480d4f0cdfdf516ecfbe44efd0f6c3c64b158e7039f2906c91b",
    "finalseg/prob_emit.py": "27d46b1c9efe4dd148fde8be042a21be40e3562d0c7f1273f9de7abae12ebb8d",
}


def default_folder() -> pathlib.Path:
    cache = os.environ.get("KVLAB_CACHE") or pathlib.Path.home() / ".cache" / "kvlab"
    return pathlib.Path(cache) / "data" / "jieba"


def find_package() -> pathlib.Path:
    spec = importlib.util.find_spec("jieba")
    if spec is not None and spec.origin:
        return pathlib.Path(spec.origin).parent
    debian = pathlib.Path("/usr/lib/python3/dist-packages/jieba")
    if debian.is_dir():
        return debian
    sys.exit(f"fetch_jieba: the package jieba is not installed: pip install jieba=={VERSION}, "
             "or apt-get install python3-jieba")


def read_checked(package: pathlib.Path, name: str) -> bytes:
    try:
        data = (package / name).read_bytes()
    except OSError as error:
        sys.exit(f"fetch_jieba: {error}")
    digest = hashlib.sha256(data).hexdigest()
    if digest != HASHES[name]:
        sys.exit(f"fetch_jieba: {package / name} is not the file of jieba {VERSION} "
                 f"(SHA-256 {digest}, expected {HASHES[name]})")
    return data


def table(source: bytes) -> dict:
    """The dictionary literal of a prob_*.py file, read without running the file."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "P":
            return ast.literal_eval(node.value)
    sys.exit("fetch_jieba: no table P in a prob_*.py file")


def hmm_lines(start: dict, trans: dict, emit: dict):
    for state in sorted(start):
        yield f"start\t{state}\t{start[state]!r}"
    for state in sorted(trans):
        for following in sorted(trans[state]):
            yield f"trans\t{state}\t{following}\t{trans[state][following]!r}"
    for state in sorted(emit):
        for character in sorted(emit[state]):
            yield f"emit\t{state}\t{character}\t{emit[state][character]!r}"


def write(path: pathlib.Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=default_folder())
    parser.add_argument("--package", type=pathlib.Path, help="the package's folder")
    arguments = parser.parse_args()
    out = arguments.out
    if (out / "source.json").exists():
        print(f"jieba's data is there: {out}")
        return
    package = arguments.package or find_package()
    files = {name: read_checked(package, name) for name in HASHES}
    tables = [table(files[f"finalseg/prob_{kind}.py"]) for kind in ("start", "trans", "emit")]
    out.mkdir(parents=True, exist_ok=True)
    write(out / "dict.txt", files["dict.txt"])
    write(out / "hmm.tsv", ("\n".join(hmm_lines(*tables)) + "\n").encode())
    source = {"package": "jieba", "version": VERSION, "licence": "MIT", "sha256": HASHES}
    write(out / "source.json", (json.dumps(source, indent=2) + "\n").encode())
    print(f"jieba's data is in {out}")


if __name__ == "__main__":
    main()
