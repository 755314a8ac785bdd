"""What the golden-file scripts share: versions, models, prompts, greedy decoding, compact files.

Every golden file is a safetensors file whose metadata says which script made it, with which
arguments and which versions of which packages. Nothing here reads output of kvlab itself.
"""

import hashlib
import json
import os
import pathlib
import platform
import sys
from importlib import metadata

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # threads that wait must not take others' cores

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE / "models"
PROMPTS = HERE / "smollm2_prompts.safetensors"
PACKAGES = ("torch", "transformers", "kvpress", "safetensors", "tokenizers", "numpy", "gguf")


def versions(packages=("torch", "transformers")):
    found = {"python": platform.python_version()}
    for name in packages:
        found[name] = metadata.version(name)
    return found


def default_smollm2_dir():
    cache = os.environ.get("KVLAB_CACHE", str(pathlib.Path.home() / ".cache" / "kvlab"))
    return pathlib.Path(cache) / "models" / "SmolLM2-135M-Instruct"


def set_up(threads=2, seed=0):
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def out_path(path):
    """Where a golden file is written: in this folder, or under KVLAB_GOLDEN_OUT (checks)."""
    root = os.environ.get("KVLAB_GOLDEN_OUT")
    return pathlib.Path(root) / pathlib.Path(path).relative_to(HERE) if root else pathlib.Path(path)


def save_golden(path, tensors, script, packages=("torch", "transformers"), **facts):
    """Writes tensors as they are, and metadata: script, versions and the caller's facts."""
    path = out_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    info = {"script": pathlib.Path(script).name, "versions": json.dumps(versions(packages))}
    for key, value in facts.items():
        info[key] = value if isinstance(value, str) else json.dumps(value)
    save_file({k: v.contiguous() for k, v in tensors.items()}, str(path), metadata=info)
    path.chmod(0o644)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB", flush=True)


def read_tensors(path):
    with safe_open(str(path), "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()


def load_model(directory, attention="eager", dtype=torch.float32):
    """A Hugging Face directory through transformers; weights as stored, computed in `dtype`."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(
        str(directory), dtype=dtype, attn_implementation=attention, local_files_only=True
    )
    return model.eval()


def greedy(model, prompt_ids, num_tokens):
    """Plain argmax decoding that ignores stop ids.

    Returns the last prompt row's logits, the tokens, and the smallest margin between the best and
    the second-best logit over all steps (a comparison with rounding error e is safe while the
    margin exceeds 2e).
    """
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    ids = torch.as_tensor(prompt_ids, dtype=torch.long).reshape(1, -1)
    out = model(input_ids=ids, past_key_values=cache, logits_to_keep=1)
    first = out.logits[0, -1].float()
    logits, tokens, margin = first, [], float("inf")
    for step in range(num_tokens):
        best = torch.topk(logits, 2).values
        margin = min(margin, float(best[0] - best[1]))
        tokens.append(int(torch.argmax(logits)))
        if step + 1 == num_tokens:
            break
        out = model(input_ids=torch.tensor([[tokens[-1]]]), past_key_values=cache)
        logits = out.logits[0, -1].float()
    return first, tokens, margin


def smollm2_prompts():
    """Committed prompt ids by name ("20", "300", "500", "1000", "4000")."""
    tensors, _ = read_tensors(PROMPTS)
    return {name: ids.tolist() for name, ids in tensors.items()}


def tiny_prompt(name, length, vocab_size, attempt=0):
    """Pseudo-random ids from a hash of the case, the same on every machine and numpy version.

    Ids repeat in a loose pattern (each of them is drawn from a window that drifts), so that
    attention has something to find.
    """
    ids = []
    counter = 0
    while len(ids) < length:
        block = hashlib.sha256(f"{name}/{length}/{attempt}/{counter}".encode()).digest()
        counter += 1
        for byte in block:
            if len(ids) > 16 and byte % 3 == 0:
                ids.append(ids[len(ids) - 3 - byte % 13])
            else:
                ids.append((byte * 7 + counter) % vocab_size)
    return ids[:length]


def sha256_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def model_hash(directory):
    """SHA-256 over config.json and weight files, to see whether a model was made differently."""
    digest = hashlib.sha256()
    for file in sorted(pathlib.Path(directory).glob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def to_int16(rows):
    array = np.asarray(rows, dtype=np.int64)
    assert array.min() >= 0 and array.max() < 32768
    return torch.from_numpy(array.astype(np.int16))


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(1)
