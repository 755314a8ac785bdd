"""The Python environment of what kvlab is compared with: transformers and kvpress on the full torch.

`use_peers()` at the top of a script makes it run there: the first time it installs scripts/peers.lock
(about 5 minutes and 6 GB) into KVLAB_PEERS, or `peers` in KVLAB_CACHE (~/.cache/kvlab).
"""

import os
import pathlib
import subprocess
import sys

LOCK = pathlib.Path(__file__).with_name("peers.lock")


def cache_folder():
    return pathlib.Path(os.environ.get("KVLAB_CACHE") or pathlib.Path.home() / ".cache" / "kvlab")


def default_model():
    return cache_folder() / "models" / "SmolLM2-135M-Instruct"


def build_folder():
    return pathlib.Path(__file__).resolve().parent.parent / "build" / "release"


def use_peers():
    folder = pathlib.Path(os.environ.get("KVLAB_PEERS") or cache_folder() / "peers")
    python = folder / "bin" / "python"
    stamp = folder / ".kvlab-lock"
    wanted = LOCK.read_text(encoding="utf-8")
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {LOCK.name} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet",
                        "-r", str(LOCK)], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    if pathlib.Path(sys.prefix).resolve() != folder.resolve():
        os.execv(python, [str(python), *sys.argv])
