#!/usr/bin/env python3
"""Hashes of the default model's tensors as transformers itself converts the GGUF file.

    python tests/golden/make_default_model_hashes.py FOLDER_OF_THE_GGUF FILE     (needs transformers)

Writes tests/golden/default_model.json: per tensor its shape and the SHA-256 of its bfloat16 bytes.
"""

import hashlib
import json
import pathlib
import sys

import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parent / "default_model.json"


def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(
        sys.argv[1], gguf_file=sys.argv[2], dtype=torch.bfloat16)
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue  # tied to the embedding
        values = tensor.contiguous().view(torch.int16).numpy().tobytes()
        tensors[name] = {"shape": list(tensor.shape), "sha256": hashlib.sha256(values).hexdigest()}
    OUT.write_text(json.dumps({
        "info": {"script": "make_default_model_hashes.py", "transformers": transformers.__version__,
                 "torch": torch.__version__},
        "tensors": tensors}, indent=1) + "\n")
    print(OUT.name, len(tensors), "tensors")


if __name__ == "__main__":
    main()
