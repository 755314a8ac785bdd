#!/usr/bin/env python3
"""kvlab and transformers side by side: prefill and decoding of one model on one machine.

    scripts/compare_transformers.py

times SmolLM2-135M-Instruct at 4,096 tokens in bfloat16 on 2 threads. Needs the release build and the
default model (scripts/setup) and installs transformers on its first run (scripts/peers.py). For the
longer prompt: --length 8000 --decode 1x4096 12x4096.

Rounds are interleaved: each one times transformers' prefill, its decoding of every batch, then kvlab's
(build/release/kvlab_speed) of the same, so that other load on the machine meets both alike. Reported are
medians with the smallest and the largest, and the ratios of the medians. A batch ARMSxLENGTH decodes so
many caches of so many entries, each with memory of its own; a step makes one token for every arm and
includes the choice of the next. transformers runs its own defaults: SDPA attention and a dynamic cache.
Prompt ids are random with a fixed seed: nothing measured here depends on what they say.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import time

import peers
from speed_program import run_speed_program


def shape(text):
    arms, _, length = text.partition("x")
    if not arms.isdigit() or not length.isdigit() or int(arms) < 1 or int(length) < 1:
        raise argparse.ArgumentTypeError(f"{text}: write it as ARMSxLENGTH, 12x4096")
    return int(arms), int(length)


def name_of(arms, length):
    return f"{arms}x{length}"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="See the first lines of this file for what is measured and how.")
    parser.add_argument("--model", type=pathlib.Path, default=peers.default_model(),
                        help="Hugging Face directory (default: the default model)")
    parser.add_argument("--length", type=int, default=4096, help="prompt tokens (default 4096)")
    parser.add_argument("--decode", type=shape, nargs="*", metavar="ARMSxLENGTH",
                        default=[(1, 4096), (12, 4096)], help="default: 1x4096 12x4096")
    parser.add_argument("--tokens", type=int, default=16, help="decoding steps per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    parser.add_argument("--cache", choices=("dynamic", "static"), default="dynamic",
                        help="transformers' cache while decoding; dynamic is its default")
    parser.add_argument("--kvlab-speed", type=pathlib.Path,
                        default=peers.build_folder() / "kvlab_speed", help="kvlab's program")
    parser.add_argument("--out", type=pathlib.Path, help="write all timings as JSON")
    args = parser.parse_args()
    for name in ("length", "tokens", "rounds", "threads"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if not (args.model / "config.json").is_file():
        parser.error(f"{args.model} has no config.json; scripts/setup makes the default model")
    if not args.kvlab_speed.is_file():
        parser.error(f"no {args.kvlab_speed}; scripts/setup builds it")
    return args


ARGUMENTS = parse_arguments()  # before anything is installed
peers.use_peers()

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache  # noqa: E402

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


def time_decode(model, source, args, batch, length):
    """Milliseconds per step of `batch` rows; filling the cache and one warm-up step excluded."""
    cache = decode_cache(model, source, length, batch, args.tokens + 1, args.cache)
    token = torch.full((batch, 1), 7)

    def step(at):
        position = torch.tensor([length + at])
        out = model(input_ids=token, past_key_values=cache, cache_position=position,
                    position_ids=position[None].expand(batch, 1))
        return out.logits[:, -1].argmax(dim=-1)

    token = step(0)[:, None]
    start = time.perf_counter()
    for at in range(args.tokens):
        token = step(at + 1)[:, None]
    return (time.perf_counter() - start) * 1000 / args.tokens


def run_kvlab(args):
    return run_speed_program(args.kvlab_speed, args.model, args.dtype, args.length, args.tokens,
                             args.threads, [name_of(*one) for one in args.decode])


def run_transformers(args, model, ids, source):
    times = {"prefill": time_prefill(model, ids[:, : args.length]) * 1000}
    for batch, length in args.decode:
        times[name_of(batch, length)] = time_decode(model, source, args, batch, length)
    return times


def summary(values):
    return {"median": statistics.median(values), "smallest": min(values), "largest": max(values)}


def ratios_of(args, theirs, ours):
    """What is divided by what, in words, and the ratio."""
    found = {f"prefill of {args.length} tokens": theirs["prefill"]["median"] / ours["prefill"]["median"]}
    for batch, length in args.decode:
        name = name_of(batch, length)
        what = f"{batch} arm{'s' if batch > 1 else ''} of {length} entries"
        found[f"step of {what}"] = theirs[name]["median"] / ours[name]["median"]
        single = theirs.get(name_of(1, length))
        if batch > 1 and single:
            found[f"token of {what}, against batch 1"] = (
                single["median"] / (ours[name]["median"] / batch))
    return found


def print_table(results):
    print(f"{'milliseconds':20} {'transformers':>32} {'kvlab':>32}")
    for key in results["transformers"]:
        cells = []
        for side in ("transformers", "kvlab"):
            found = results[side][key]
            cells.append(f"{found['median']:.1f} ({found['smallest']:.1f} to {found['largest']:.1f})")
        print(f"{key:20} {cells[0]:>32} {cells[1]:>32}")
    print("\nhow many times as long transformers takes")
    for what, ratio in results["ratios"].items():
        print(f"  {what}: {ratio:.2f}")


def main():
    args = ARGUMENTS
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(
        str(args.model), dtype=getattr(torch, args.dtype), attn_implementation=args.attention,
        local_files_only=True).eval()
    longest = max([args.length, *(length + args.tokens + 1 for _, length in args.decode)])
    room = model.config.max_position_embeddings
    if longest > room:
        sys.exit(f"error: {longest} positions asked for, the model has {room}")
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, model.config.vocab_size, (1, longest), generator=generator)
    decode_length = max((length for _, length in args.decode), default=64)
    source = prefill(model, ids[:, :decode_length])  # also the warm-up
    samples = {"transformers": {}, "kvlab": {}}
    for round_index in range(args.rounds):
        for side, times in (("transformers", run_transformers(args, model, ids, source)),
                            ("kvlab", run_kvlab(args))):
            for key, value in times.items():
                samples[side].setdefault(key, []).append(value)
        print(f"round {round_index + 1} of {args.rounds} done", file=sys.stderr)
    results = {side: {key: summary(v) for key, v in found.items()}
               for side, found in samples.items()}
    results["ratios"] = ratios_of(args, results["transformers"], results["kvlab"])
    print_table(results)
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
