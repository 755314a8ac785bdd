#!/usr/bin/env python3
"""Runs kvpress over RULER files, cell by cell, with timings and replies.

    python3 -m venv peers && peers/bin/pip install torch==2.11.0 transformers==5.2.0 kvpress==0.5.5
    peers/bin/python scripts/compare_kvpress.py --model DIR --files ruler/*.jsonl --samples 5 \
        --presses full snapkv pyramidkv streaming_llm tova --budgets 64 128 256 512 \
        --out kvpress.jsonl [--kvlab 'build/release/kvlab run SWEEP.json --db FILE']

Files are RULER's JSON lines (`input`, `outputs`, `answer_prefix`); the file's name is the task. Every
(sample, press, budget) goes through kvpress's own text-generation pipeline as its evaluation does
it: the whole input, question included, is the compressed context; assistant header and answer prefix
follow outside it; one prefill for each cell. Budgets are entries per layer and KV head, turned into
kvpress's compression ratio for each prompt; --ratios gives ratios directly.

--out gets one JSON line a cell: task, index, press, its parameters, ratio, kept entries, context and
new tokens, seconds (prefill and decoding apart), reply, references. A run that was cut short goes on
where it stopped. The summary on the screen sums the seconds per press and over all; with --kvlab
that command (cells chosen to match, by you) is timed before and after, and the ratio of the totals
is printed, its faster and its slower run apart.

--new-tokens N makes every reply exactly N tokens long (stop ids are ignored), for comparisons of
time at equal numbers of new tokens.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from importlib import metadata

import kvpress
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW_TOKENS = {"niah": 128, "vt": 30, "cwe": 120, "fwe": 50, "qa": 32}  # RULER's own limits


def snapkv(args, ratio, kind=None):
    settings = {name: getattr(args, name) for name in ("window_size", "kernel_size")
                if getattr(args, name)}
    return (kind or kvpress.SnapKVPress)(ratio, **settings)


PRESSES = {
    "full": lambda args, ratio: None,
    "snapkv": snapkv,
    "pyramidkv": lambda args, ratio: snapkv(args, ratio, kvpress.PyramidKVPress),
    "adakv": lambda args, ratio: kvpress.AdaKVPress(snapkv(args, ratio)),
    "streaming_llm": lambda args, ratio: kvpress.StreamingLLMPress(ratio),
    "tova": lambda args, ratio: kvpress.TOVAPress(ratio),
    "knorm": lambda args, ratio: kvpress.KnormPress(ratio),
    "keydiff": lambda args, ratio: kvpress.KeyDiffPress(ratio),
    "expected_attention": lambda args, ratio: kvpress.ExpectedAttentionPress(ratio),
    "observed_attention": lambda args, ratio: kvpress.ObservedAttentionPress(ratio),
}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="See the first lines of this file for the environment and the file layouts.")
    parser.add_argument("--model", required=True, type=pathlib.Path, help="Hugging Face directory")
    parser.add_argument("--files", required=True, nargs="+", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=5, help="first so many of each file")
    parser.add_argument("--presses", nargs="+", default=["full", "snapkv"], choices=list(PRESSES))
    parser.add_argument("--budgets", nargs="*", type=int, default=[], help="entries kept")
    parser.add_argument("--ratios", nargs="*", type=float, default=[], help="shares evicted")
    parser.add_argument("--window-size", type=int, help="SnapKV family; kvpress's default is 64")
    parser.add_argument("--kernel-size", type=int, help="SnapKV family; kvpress's default is 5")
    parser.add_argument("--new-tokens", type=int, help="exactly so many in every reply")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--kvlab", metavar="COMMAND", help="timed before and after, see above")
    args = parser.parse_args()
    missing = [str(f) for f in args.files if not f.is_file()]
    if missing:
        parser.error(f"no such file: {', '.join(missing)}")
    if set(args.presses) - {"full"} and not args.budgets and not args.ratios:
        parser.error("give --budgets or --ratios")
    if any(not 0 <= r < 1 for r in args.ratios) or any(b < 1 for b in args.budgets):
        parser.error("--ratios are within [0, 1), --budgets at least 1")
    return args


def read_samples(path, count):
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number == count:
                return
            try:
                record = json.loads(line)
                yield {"input": record["input"], "outputs": record["outputs"],
                       "answer_prefix": record.get("answer_prefix", ""),
                       "index": record.get("index", number)}
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                sys.exit(f"error: {path}, line {number + 1}: not a RULER record ({error!r})")


def ratio_of(budget, length):
    """kvpress keeps int(length * (1 - ratio)) entries: the ratio for which that is `budget`."""
    ratio = 1 - budget / length
    while int(length * (1 - ratio)) < budget:
        ratio -= 2.0 ** -53
    return ratio


class Pipeline:
    """kvpress's pipeline with the seconds of prefill, and of all, written down."""

    def __init__(self, args, attention):
        self.model = AutoModelForCausalLM.from_pretrained(
            str(args.model), dtype=getattr(torch, args.dtype), attn_implementation=attention,
            local_files_only=True).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(str(args.model), local_files_only=True)
        self.pipe = transformers.pipeline("kv-press-text-generation", model=self.model,
                                          tokenizer=self.tokenizer)
        self.model.model.register_forward_hook(self.note)
        self.prefilled_at, self.prefilled, self.kept, self.new_tokens = 0.0, False, 0, 0
        if args.new_tokens:
            self.model.generation_config.eos_token_id = -1

    def note(self, module, inputs, output):
        """The first forward of a cell is its prefill, the second reads the prefix, then tokens."""
        if not self.prefilled:
            self.prefilled, self.prefilled_at = True, time.perf_counter()
        else:
            self.new_tokens += 1

    def context_ids(self, sample):
        prepared = self.pipe.preprocess(sample["input"], [""], sample["answer_prefix"], 1 << 30)
        return prepared["context_ids"].shape[1]

    def run(self, sample, press, max_new_tokens):
        self.prefilled, self.new_tokens = False, 0
        cache = transformers.DynamicCache()
        start = time.perf_counter()
        answer = self.pipe(sample["input"], question="", answer_prefix=sample["answer_prefix"],
                           press=press, max_new_tokens=max_new_tokens, cache=cache)["answer"]
        end = time.perf_counter()
        return {"reply": answer, "seconds": end - start,
                "prefill_seconds": self.prefilled_at - start, "new_tokens": self.new_tokens,
                "entries_layer_0": cache.get_seq_length(0)}


def time_kvlab(command):
    start = time.perf_counter()
    done = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"error: exit status {done.returncode} of: {command}")
    return time.perf_counter() - start


def cells_of(args, pipe, sample):
    """(press, label, ratio) of a sample's cells, the full cache once."""
    length = pipe.context_ids(sample)
    for name in args.presses:
        if name == "full":
            yield name, "full", 0.0, length
            continue
        for budget in args.budgets:
            yield name, f"n{budget}", ratio_of(budget, length) if budget < length else 0.0, length
        for ratio in args.ratios:
            yield name, f"r{ratio:g}", ratio, length


def done_cells(path):
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):  # cut short in the middle of a line
        text = text[: text.rfind("\n") + 1]
        path.write_text(text, encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return {(r["task"], r["index"], r["press"], r["cell"]): r for r in rows}


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    kvlab = [time_kvlab(args.kvlab)] if args.kvlab else []
    pipes = {"sdpa": Pipeline(args, "sdpa")}
    if "observed_attention" in args.presses:
        pipes["eager"] = Pipeline(args, "eager")
    for pipe in pipes.values():  # warm-up
        pipe.run({"input": "warm " * 64, "answer_prefix": ""}, None, 2)
    earlier = done_cells(args.out)
    rows, resumed = {}, 0  # of the cells asked for
    with args.out.open("a", encoding="utf-8") as out:
        for path in args.files:
            task = path.stem
            new_tokens = args.new_tokens or NEW_TOKENS.get(task.split("_")[0], 128)
            for sample in read_samples(path, args.samples):
                for name, label, ratio, length in cells_of(args, pipes["sdpa"], sample):
                    key = (task, sample["index"], name, label)
                    if key in earlier:
                        rows[key] = earlier[key]
                        resumed += 1
                        continue
                    pipe = pipes["eager" if name == "observed_attention" else "sdpa"]
                    row = {"task": task, "index": sample["index"], "press": name, "cell": label,
                           "ratio": ratio, "context_tokens": length,
                           "window_size": args.window_size, "kernel_size": args.kernel_size,
                           **pipe.run(sample, PRESSES[name](args, ratio), new_tokens),
                           "outputs": sample["outputs"], "dtype": args.dtype,
                           "threads": args.threads, "kvpress": metadata.version("kvpress"),
                           "transformers": transformers.__version__, "torch": torch.__version__}
                    rows[key] = row
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                    print(f"{task} {sample['index']} {name} {label}: {row['seconds']:.1f} s",
                          file=sys.stderr)
    if args.kvlab:
        kvlab.append(time_kvlab(args.kvlab))
    print_summary(rows, kvlab, resumed)


def print_summary(rows, kvlab, resumed):
    print(f"{'press':20} {'cells':>6} {'seconds':>9} {'prefill':>9} {'new tokens':>11}")
    for name in dict.fromkeys(row["press"] for row in rows.values()):
        own = [row for row in rows.values() if row["press"] == name]
        print(f"{name:20} {len(own):6} {sum(r['seconds'] for r in own):9.1f} "
              f"{sum(r['prefill_seconds'] for r in own):9.1f} {sum(r['new_tokens'] for r in own):11}")
    total = sum(row["seconds"] for row in rows.values())
    print(f"{'all':20} {len(rows):6} {total:9.1f}")
    if kvlab and resumed:
        print(f"kvlab's command: {kvlab[0]:.1f} s before, {kvlab[1]:.1f} s after; no ratio, since "
              f"{resumed} cells are from an earlier run: name a new --out to time all side by side")
    elif kvlab:
        print(f"kvlab's command: {kvlab[0]:.1f} s before, {kvlab[1]:.1f} s after; kvpress takes "
              f"{total / max(kvlab):.1f} to {total / min(kvlab):.1f} times as long")


if __name__ == "__main__":
    main()
