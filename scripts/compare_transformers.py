#!/usr/bin/env python3
"""Side-by-side timings of kvlab and transformers on one model and machine.

    python3 -m venv peers && peers/bin/pip install torch==2.11.0 transformers==5.2.0
    peers/bin/python scripts/compare_transformers.py --model DIR --length 4096 \
        --kvlab 'COMMAND that prints one JSON line' --out transformers.json

Measures transformers' prefill of --length tokens (logits of the last row only) and its decoding at
batch 1 and --batch, every cache --decode-length entries long (default: --length), in --dtype with
--threads threads. Rounds are interleaved: each round times prefill, both decodings and, where
--kvlab is given, that command, so that other load on the machine meets all of them alike. Reported
are medians with the smallest and the largest, and the ratios of the medians.

The kvlab command is run through a shell with {model} {length} {decode_length} {batch} {tokens}
{dtype} {threads} filled in. Its last output line must be a JSON object with `prefill_s`,
`decode_1_ms_per_step` and `decode_batch_ms_per_step` (a step makes one token for every arm); keys
that are missing are left out of the ratios.

Prompt ids are random with a fixed seed: nothing measured here depends on what they say.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="See the first lines of this file for the environment and the kvlab command.")
    parser.add_argument("--model", required=True, type=pathlib.Path, help="Hugging Face directory")
    parser.add_argument("--length", type=int, default=4096, help="prompt tokens (default 4096)")
    parser.add_argument("--decode-length", type=int, help="cache entries while decoding")
    parser.add_argument("--batch", type=int, default=12, help="arms of the larger batch")
    parser.add_argument("--tokens", type=int, default=16, help="decoding steps per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    parser.add_argument("--cache", choices=("dynamic", "static"), default="dynamic",
                        help="transformers' cache while decoding; dynamic is its default")
    parser.add_argument("--kvlab", metavar="COMMAND", help="kvlab's side, see above")
    parser.add_argument("--out", type=pathlib.Path, help="write all timings as JSON")
    args = parser.parse_args()
    args.decode_length = args.decode_length or args.length
    for name in ("length", "decode_length", "batch", "tokens", "rounds", "threads"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if not (args.model / "config.json").is_file():
        parser.error(f"{args.model} has no config.json")
    return args


def prefill(model, ids):
    cache = DynamicCache(config=model.config)
    model(input_ids=ids, past_key_values=cache, logits_to_keep=1)
    return cache


def decode_cache(model, source, length, batch, tokens, kind):
    """A cache of `batch` equal rows, `length` entries each."""
    if kind == "static":
        cache = StaticCache(config=model.config, max_cache_len=length + tokens)
    else:
        cache = DynamicCache(config=model.config)
    position = torch.arange(length)
    for index, layer in enumerate(source.layers):
        keys, values = (t[:, :, :length].expand(batch, -1, -1, -1).contiguous()
                        for t in (layer.keys, layer.values))
        cache.update(keys, values, index, {"cache_position": position})
    return cache


def time_prefill(model, ids):
    start = time.perf_counter()
    prefill(model, ids)
    return time.perf_counter() - start


def time_decode(model, source, args, batch):
    """Milliseconds per step of `batch` rows; filling the cache and one warm-up step excluded."""
    length = args.decode_length
    cache = decode_cache(model, source, length, batch, args.tokens + 1, args.cache)
    token = torch.full((batch, 1), 7)

    def step(at):
        position = torch.tensor([length + at])
        out = model(input_ids=token, past_key_values=cache, cache_position=position,
                    position_ids=position[None].expand(batch, 1))
        return out.logits[:, -1].argmax(dim=-1)

    step(0)
    start = time.perf_counter()
    for at in range(args.tokens):
        token = step(at + 1)[:, None]
    return (time.perf_counter() - start) * 1000 / args.tokens


def run_kvlab(args):
    command = args.kvlab
    for name in ("model", "length", "decode_length", "batch", "tokens", "dtype", "threads"):
        command = command.replace("{" + name + "}", str(getattr(args, name)))
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    try:
        result = json.loads(lines[-1]) if lines and done.returncode == 0 else None
    except json.JSONDecodeError:
        result = None
    if not isinstance(result, dict):
        sys.exit(f"error: the kvlab command must end with a line of JSON (exit status "
                 f"{done.returncode}):\n{command}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return {key: result[key] for key in MEASURES if key in result}


MEASURES = ("prefill_s", "decode_1_ms_per_step", "decode_batch_ms_per_step")


def summary(values):
    return {"median": statistics.median(values), "smallest": min(values), "largest": max(values)}


def print_table(results, batch):
    names = {"prefill_s": "prefill, s", "decode_1_ms_per_step": "decode, batch 1, ms/token",
             "decode_batch_ms_per_step": f"decode, batch {batch}, ms/step"}
    print(f"{'':28} {'transformers':>26} {'kvlab':>26} {'ratio':>7}")
    for key in MEASURES:
        cells = []
        for side in ("transformers", "kvlab"):
            found = results.get(side, {}).get(key)
            cells.append(f"{found['median']:.2f} ({found['smallest']:.2f} to "
                         f"{found['largest']:.2f})" if found else "-")
        ratio = results.get("ratios", {}).get(key)
        print(f"{names[key]:28} {cells[0]:>26} {cells[1]:>26} {f'{ratio:.2f}' if ratio else '-':>7}")
    for key, value in results.get("per_token_ratios", {}).items():
        print(f"{key}: {value:.2f}")


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(
        str(args.model), dtype=getattr(torch, args.dtype), attn_implementation=args.attention,
        local_files_only=True).eval()
    room = model.config.max_position_embeddings
    longest = max(args.length, args.decode_length + args.tokens + 1)
    if longest > room:
        sys.exit(f"error: {longest} positions asked for, the model has {room}")
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, model.config.vocab_size, (1, max(args.length, args.decode_length)),
                        generator=generator)
    source = prefill(model, ids[:, : args.decode_length])  # also the warm-up
    samples = {"transformers": {key: [] for key in MEASURES}, "kvlab": {}}
    for round_index in range(args.rounds):
        ours = samples["transformers"]
        ours["prefill_s"].append(time_prefill(model, ids[:, : args.length]))
        ours["decode_1_ms_per_step"].append(time_decode(model, source, args, 1))
        ours["decode_batch_ms_per_step"].append(time_decode(model, source, args, args.batch))
        if args.kvlab:
            for key, value in run_kvlab(args).items():
                samples["kvlab"].setdefault(key, []).append(value)
        print(f"round {round_index + 1} of {args.rounds} done", file=sys.stderr)
    results = {side: {key: summary(v) for key, v in found.items()}
               for side, found in samples.items() if found}
    if "kvlab" in results:
        theirs, ours = results["transformers"], results["kvlab"]
        results["ratios"] = {k: theirs[k]["median"] / ours[k]["median"] for k in ours}
        batch_step = ours.get("decode_batch_ms_per_step")
        if batch_step:
            per_token = batch_step["median"] / args.batch
            results["per_token_ratios"] = {
                f"batch {args.batch} per token, against transformers at batch 1":
                    theirs["decode_1_ms_per_step"]["median"] / per_token,
                f"batch {args.batch} per token, against transformers at batch {args.batch}":
                    theirs["decode_batch_ms_per_step"]["median"] / args.batch / per_token}
    print_table(results, args.batch)
    if args.out:
        facts = {k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(args).items()
                 if k != "out"}
        record = {"arguments": facts, "results": results, "samples": samples,
                  "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                               "python": platform.python_version()},
                  "machine": {"processor": platform.processor() or platform.machine(),
                              "cores": os.cpu_count()}}
        args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
