#!/usr/bin/env python3
"""Word lists for RULER, from the installed PyPI package wonderwords, into the cache. Idempotent.

    python scripts/fetch_data.py --cache ~/.cache/kvlab
"""

import argparse
import importlib.metadata
import importlib.util
import json
import pathlib
import shutil
import sys
import tempfile

LISTS = ("adjectivelist.txt", "nounlist.txt", "verblist.txt")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    out = parser.parse_args().cache / "data" / "wordlists" / "wonderwords"
    version = importlib.metadata.version("wonderwords")
    source = out / "source.json"
    if source.exists() and json.loads(source.read_text())["version"] == version:
        return 0
    package = pathlib.Path(importlib.util.find_spec("wonderwords").origin).parent
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = pathlib.Path(tempfile.mkdtemp(dir=out.parent))
    for name in LISTS:
        shutil.copyfile(package / "assets" / name, staging / name)
    (staging / "source.json").write_text(json.dumps({"package": "wonderwords", "version": version}))
    staging.chmod(0o755)
    if out.exists():
        shutil.rmtree(out)
    staging.rename(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
