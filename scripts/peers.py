"""The Python environments of what kvlab is compared with.

`use_peers()` at the top of a script makes it run in one: the first time it installs a lock file, by
default scripts/peers.lock (transformers and kvpress on the full torch; about 5 minutes and 6 GB), into
a folder of KVLAB_CACHE (~/.cache/kvlab); KVLAB_PEERS names another place for `peers`.
"""

import os
import pathlib
import subprocess
import sys


def cache_folder():
    return pathlib.Path(os.environ.get("KVLAB_CACHE") or pathlib.Path.home() / ".cache" / "kvlab")


def default_model():
    return cache_folder() / "models" / "SmolLM2-135M-Instruct"


def build_folder():
    return pathlib.Path(__file__).resolve().parent.parent / "build" / "release"


def use_peers(lock_name="peers.lock", folder_name="peers"):
    lock = pathlib.Path(__file__).with_name(lock_name)
    named = os.environ.get("KVLAB_PEERS") if folder_name == "peers" else None
    folder = pathlib.Path(named or cache_folder() / folder_name)
    python = folder / "bin" / "python"
    stamp = folder / ".kvlab-lock"
    wanted = lock.read_text(encoding="utf-8")
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {lock.name} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet",
                        "-r", str(lock)], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    if pathlib.Path(sys.prefix).resolve() != folder.resolve():
        os.execv(python, [str(python), *sys.argv])
