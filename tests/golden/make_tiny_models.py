"""Makes the tiny random-weight Hugging Face checkpoints in models/ that other golden files use.

    python make_tiny_models.py [--out models]

Each is about 250 KB of float32. Together they cover: Llama with `llama3`, `yarn` and `linear` rope
scaling, Qwen2 (biases; a sliding window that is stored but switched off), Qwen3 (query and key
norms, head_dim other than hidden/heads), Mistral with a window shorter than the prompts and with
none, a query group of four with an explicit head_dim, a sharded checkpoint, config.json in the
transformers 5 spelling (`rope_parameters`, `dtype`) and in the older ones (`rope_scaling` with
`rope_theta` beside it, `torch_dtype`; and the oldest, where the scaling's kind is called `type`).

Weights: normal with standard deviation 0.2 to 0.25 for matrices, so that attention and logits are
far from flat; biases and norm weights are random too, so that leaving one out shows.
There is no tokenizer: prompts are ids.
"""

import argparse
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file

import common

VOCAB = 128
BASE = dict(
    vocab_size=VOCAB,
    hidden_size=64,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    rms_norm_eps=1e-5,
    bos_token_id=0,
    eos_token_id=1,
    tie_word_embeddings=True,
)


def llama_shapes(config):
    """Name and shape of every tensor of the Llama layout, from the fields of a config."""
    hidden, inter = config["hidden_size"], config["intermediate_size"]
    head_dim = config.get("head_dim", hidden // config["num_attention_heads"])
    q = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (hidden,)
        yield at + "self_attn.q_proj.weight", (q, hidden)
        yield at + "self_attn.k_proj.weight", (kv, hidden)
        yield at + "self_attn.v_proj.weight", (kv, hidden)
        yield at + "self_attn.o_proj.weight", (hidden, q)
        if config["model_type"] == "qwen2":
            yield at + "self_attn.q_proj.bias", (q,)
            yield at + "self_attn.k_proj.bias", (kv,)
            yield at + "self_attn.v_proj.bias", (kv,)
        if config["model_type"] == "qwen3":
            yield at + "self_attn.q_norm.weight", (head_dim,)
            yield at + "self_attn.k_norm.weight", (head_dim,)
        yield at + "post_attention_layernorm.weight", (hidden,)
        yield at + "mlp.gate_proj.weight", (inter, hidden)
        yield at + "mlp.up_proj.weight", (inter, hidden)
        yield at + "mlp.down_proj.weight", (hidden, inter)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def random_weights(config, seed, std):
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in llama_shapes(config):
        noise = torch.randn(shape, generator=generator)
        if name.endswith("norm.weight"):
            weights[name] = 1 + 0.3 * noise
        elif name.endswith(".bias"):
            weights[name] = 0.5 * noise
        elif name.startswith(("model.embed", "lm_head")):
            weights[name] = 0.25 * noise
        else:
            weights[name] = std * noise
    return weights


def old_spelling(model_type, architecture, **fields):
    return {"architectures": [architecture], "model_type": model_type, "hidden_act": "silu",
            "torch_dtype": "float32", "transformers_version": "4.47.1", **BASE, **fields}


def new_spelling(model_type, architecture, **fields):
    return {"architectures": [architecture], "model_type": model_type, "hidden_act": "silu",
            "dtype": "float32", "transformers_version": "5.2.0", **BASE, **fields}


LLAMA, QWEN2, QWEN3, MISTRAL = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
                                "MistralForCausalLM")
MODELS = {
    # Wavelengths below 16 stay, above 64 are stretched, between them blended: all three occur.
    "tiny-llama3": old_spelling(
        "llama", LLAMA, attention_bias=False, mlp_bias=False, rope_theta=10000.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                      "high_freq_factor": 4.0, "original_max_position_embeddings": 64}),
    "tiny-llama-yarn": new_spelling(
        "llama", LLAMA, attention_bias=False, mlp_bias=False, head_dim=16,
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
                         "original_max_position_embeddings": 64, "beta_fast": 32.0,
                         "beta_slow": 1.0}),
    "tiny-llama-linear": old_spelling(
        "llama", LLAMA, rope_theta=10000.0, tie_word_embeddings=False,
        rope_scaling={"type": "linear", "factor": 4.0}),
    "tiny-qwen2": old_spelling(
        "qwen2", QWEN2, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=False,
        sliding_window=16, max_window_layers=1, use_sliding_window=False, rope_scaling=None),
    "tiny-qwen3": new_spelling(
        "qwen3", QWEN3, head_dim=32, rms_norm_eps=1e-6, attention_bias=False, sliding_window=None,
        max_window_layers=2, use_sliding_window=False,
        layer_types=["full_attention", "full_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
    "tiny-mistral-window": old_spelling(
        "mistral", MISTRAL, rope_theta=10000.0, sliding_window=24, tie_word_embeddings=False),
    "tiny-mistral": new_spelling(
        "mistral", MISTRAL, head_dim=16, sliding_window=None, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
    "tiny-gqa": old_spelling(
        "llama", LLAMA, num_attention_heads=8, num_key_value_heads=2, head_dim=16,
        num_hidden_layers=3, max_position_embeddings=8192, rope_theta=100000.0, rope_scaling=None),
    "tiny-sharded": old_spelling("llama", LLAMA, num_hidden_layers=3, rope_theta=10000.0,
                                 rope_scaling=None, tie_word_embeddings=False),
}
GENERATION_CONFIG = {"tiny-sharded": {"bos_token_id": 0, "eos_token_id": [1, 5]}}
STD = {"tiny-gqa": 0.2, "tiny-qwen3": 0.25}


def write_model(directory, config, weights, shards):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    info = {"format": "pt"}
    if shards == 1:
        save_file(weights, str(directory / "model.safetensors"), metadata=info)
        return
    names = list(weights)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = names[shard * len(names) // shards: (shard + 1) * len(names) // shards]
        weight_map.update({name: file for name in part})
        save_file({name: weights[name] for name in part}, str(directory / file), metadata=info)
    total = sum(w.numel() * w.element_size() for w in weights.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=common.MODELS)
    args = parser.parse_args()
    made = {"script": "make_tiny_models.py", "versions": common.versions(("torch", "safetensors"))}
    for seed, (name, config) in enumerate(MODELS.items(), start=1001):
        shards = 2 if name == "tiny-sharded" else 1
        weights = random_weights(config, seed, STD.get(name, 0.2))
        write_model(args.out / name, config, weights, shards)
        if name in GENERATION_CONFIG:
            text = json.dumps(GENERATION_CONFIG[name], indent=2) + "\n"
            (args.out / name / "generation_config.json").write_text(text)
        size = sum(w.numel() * 4 for w in weights.values())
        made[name] = {"seed": seed, "std": STD.get(name, 0.2),
                      "sha256": common.model_hash(args.out / name)}
        print(f"{name}: {size / 1024:.0f} KB")
    (args.out / "made_by.json").write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
