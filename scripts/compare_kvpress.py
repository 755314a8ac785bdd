#!/usr/bin/env python3
"""A whole sweep in kvlab and its cells in kvpress, timed in one run on one machine.

    scripts/compare_kvpress.py --cells 24 --out kvpress.jsonl     # about 10 minutes
    scripts/compare_kvpress.py --cells 0 --out kvpress.jsonl      # every cell: more than an hour

The sweep: RULER at 4,096 tokens, 5 tasks x 5 samples, SnapKV, PyramidKV, StreamingLLM and TOVA with
kvpress's own settings at 4 budgets, and the full cache: 425 cells. Needs the release build and the
default model (scripts/setup) and installs kvpress on its first run (scripts/peers.py).

1. kvlab writes the prompts (kvlab data ruler) and runs the whole sweep into a new database. Its time is
   that of the program: loading the model, every prefill, every reply, storing the rows.
2. kvpress runs --cells of the same cells, a random choice with a fixed seed, the same share of every
   press (0: all of them), through its own text-generation pipeline as its evaluation does: the input
   with its question is the compressed context, assistant header and answer prefix follow outside it,
   one prefill a cell. Each reply is exactly as long as kvlab's reply in that cell (stop ids are
   ignored). Loading the model is not counted. Budgets, entries per layer and KV head, become kvpress's
   compression ratio for each prompt.
3. kvlab runs the whole sweep again, into another database (not with --once).

kvpress's time for all cells is the sum over its presses of the mean cell times the number of cells; with
--cells 0 it is what was measured. The ratio is given to kvlab's slower and to its faster run.
--out gets one JSON line for each cell of kvpress: task, sample, press, budget, seconds, reply.
"""

import argparse
import json
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata

import peers

TASKS = ("niah_single_1", "niah_multikey_2", "niah_multikey_3", "vt", "fwe")
# kvlab's method with kvpress's settings.
METHODS = {
    "full": "full",
    "snapkv": {"name": "snapkv", "params": {"variant": "kvpress"}},
    "pyramidkv": {"name": "pyramidkv", "params": {"variant": "kvpress"}},
    "adakv": "adakv",
    "streaming_llm": "streaming_llm",
    "tova": {"name": "tova", "params": {"variant": "kvpress"}},
    "knorm": "knorm",
    "keydiff": "keydiff",
    "expected_attention": "expected_attention",
}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="See the first lines of this file for what is measured and how.")
    parser.add_argument("--model", type=pathlib.Path, default=peers.default_model(),
                        help="Hugging Face directory (default: the default model)")
    parser.add_argument("--length", type=int, default=4096, help="tokens of a RULER prompt")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--samples", type=int, default=5, help="of each task")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS),
                        default=["full", "snapkv", "pyramidkv", "streaming_llm", "tova"])
    parser.add_argument("--budgets", nargs="+", type=int, default=[64, 128, 256, 512])
    parser.add_argument("--cells", type=int, default=24, help="kvpress's cells; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of cells")
    parser.add_argument("--once", action="store_true", help="run kvlab's sweep only once")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--kvlab", type=pathlib.Path, default=peers.build_folder() / "kvlab")
    parser.add_argument("--out", type=pathlib.Path, help="kvpress's cells as JSON lines")
    args = parser.parse_args()
    if not (args.model / "config.json").is_file():
        parser.error(f"{args.model} has no config.json; scripts/setup makes the default model")
    if not args.kvlab.is_file():
        parser.error(f"no {args.kvlab}; scripts/setup builds it")
    if args.cells < 0 or args.samples < 1 or args.threads < 1 or min(args.budgets) < 1:
        parser.error("--cells is 0 or more; --samples, --threads and --budgets are 1 or more")
    return args


ARGUMENTS = parse_arguments()  # before anything is installed
peers.use_peers()

import kvpress  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

# The press of each method, by its compression ratio.
PRESSES = {
    "snapkv": kvpress.SnapKVPress,
    "pyramidkv": kvpress.PyramidKVPress,
    "adakv": lambda ratio: kvpress.AdaKVPress(kvpress.SnapKVPress(ratio)),
    "streaming_llm": kvpress.StreamingLLMPress,
    "tova": kvpress.TOVAPress,
    "knorm": kvpress.KnormPress,
    "keydiff": kvpress.KeyDiffPress,
    "expected_attention": kvpress.ExpectedAttentionPress,
}


def call(command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: exit status {done.returncode} of {' '.join(map(str, command))}\n"
                 f"{done.stderr[-1000:]}")


def write_prompts(args, folder):
    """RULER's JSON lines, one file a task; returns {(task, index): record}."""
    records = {}
    for task in args.tasks:
        path = folder / f"{task}.jsonl"
        call([args.kvlab, "data", "ruler", "--task", task, "--length", args.length, "--samples",
              args.samples, "--tokenizer", args.model, "--out", path])
        for index, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            records[task, index] = json.loads(line)
    return records


def write_sweep(args, prompts, path):
    sweep = {"name": "compare_kvpress", "model": str(args.model.resolve()), "dtype": args.dtype,
             "threads": args.threads,
             "benchmarks": [{"name": "ruler", "folder": str(prompts), "tasks": args.tasks}],
             "methods": [METHODS[name] for name in args.methods], "budgets": args.budgets}
    path.write_text(json.dumps(sweep), encoding="utf-8")


def run_kvlab(args, sweep, database):
    """Seconds of the whole program, and its cells: {(task, index, method, budget): new tokens}."""
    start = time.perf_counter()
    call([args.kvlab, "run", sweep, "--db", database])
    seconds = time.perf_counter() - start
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "SELECT task, sample_index, method, budget, new_tokens, status FROM cells").fetchall()
    bad = [row for row in rows if row[5] != "ok"]
    if bad:
        sys.exit(f"error: kvlab's cell {bad[0]} is not ok")
    return seconds, {(task, index, method, 0 if method == "full" else int(budget)): tokens
                     for task, index, method, budget, tokens, _ in rows}


def choose_cells(args, cells):
    """The same share of every method's cells, in random order."""
    generator = random.Random(args.seed)
    chosen = []
    for method in args.methods:
        own = sorted(key for key in cells if key[2] == method)
        count = len(own) if args.cells == 0 else max(2, round(args.cells * len(own) / len(cells)))
        chosen += generator.sample(own, min(len(own), count))
    generator.shuffle(chosen)
    return chosen


def ratio_of(budget, length):
    """kvpress keeps int(length * (1 - ratio)) entries: the ratio for which that is `budget`."""
    if budget == 0 or budget >= length:
        return 0.0
    ratio = 1 - budget / length
    while int(length * (1 - ratio)) < budget:
        ratio -= 2.0 ** -53
    return ratio


class Pipeline:
    """kvpress's pipeline with the seconds of prefill, and of all, written down."""

    def __init__(self, args):
        self.model = AutoModelForCausalLM.from_pretrained(
            str(args.model), dtype=getattr(torch, args.dtype), attn_implementation="sdpa",
            local_files_only=True).eval()
        self.model.generation_config.eos_token_id = -1  # every reply as long as it is told to be
        self.tokenizer = AutoTokenizer.from_pretrained(str(args.model), local_files_only=True)
        self.pipe = transformers.pipeline("kv-press-text-generation", model=self.model,
                                          tokenizer=self.tokenizer)
        self.model.model.register_forward_hook(self.note)
        self.prefilled_at, self.prefilled, self.new_tokens = 0.0, False, 0

    def note(self, module, inputs, output):
        """The first forward of a cell is its prefill, the second reads the prefix, then tokens."""
        if not self.prefilled:
            self.prefilled, self.prefilled_at = True, time.perf_counter()
        else:
            self.new_tokens += 1

    def run(self, record, method, budget, max_new_tokens):
        prefix = record.get("answer_prefix", "")
        prepared = self.pipe.preprocess(record["input"], [""], prefix, 1 << 30)
        length = prepared["context_ids"].shape[1]
        press = PRESSES[method](ratio_of(budget, length)) if method != "full" else None
        self.prefilled, self.new_tokens = False, 0
        cache = transformers.DynamicCache()
        start = time.perf_counter()
        answer = self.pipe(record["input"], question="", answer_prefix=prefix, press=press,
                           max_new_tokens=max_new_tokens, cache=cache)["answer"]
        end = time.perf_counter()
        return {"seconds": end - start, "prefill_seconds": self.prefilled_at - start,
                "context_tokens": length, "new_tokens": self.new_tokens, "reply": answer}


def run_kvpress(args, records, cells, chosen):
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    pipe = Pipeline(args)
    pipe.run({"input": "warm " * 64}, "full", 0, 2)
    rows = []
    for number, key in enumerate(chosen):
        task, index, method, budget = key
        row = {"task": task, "index": index, "press": method, "budget": budget,
               **pipe.run(records[task, index], method, budget, cells[key]),
               "outputs": records[task, index]["outputs"]}
        rows.append(row)
        print(f"{number + 1} of {len(chosen)}: {task} {index} {method} {budget or ''}: "
              f"{row['seconds']:.1f} s", file=sys.stderr)
        if args.out:
            with args.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
    return rows


def print_summary(args, cells, kvlab_seconds, rows):
    times = " and ".join(f"{seconds:.1f}" for seconds in kvlab_seconds)
    print(f"kvlab: {len(cells)} cells, {sum(cells.values())} new tokens: {times} s")
    print(f"\nkvpress {metadata.version('kvpress')} on transformers {transformers.__version__}")
    print(f"{'press':16} {'cells':>6} {'timed':>6} {'seconds a cell':>28} {'prefill':>8} {'tokens':>7}")
    total = 0.0
    for method in args.methods:
        own = [row for row in rows if row["press"] == method]
        count = sum(key[2] == method for key in cells)
        seconds = [row["seconds"] for row in own]
        mean = statistics.mean(seconds)
        total += mean * count
        print(f"{method:16} {count:6} {len(own):6} "
              f"{f'{mean:.2f} ({min(seconds):.2f} to {max(seconds):.2f})':>28} "
              f"{statistics.mean(r['prefill_seconds'] for r in own):8.2f} "
              f"{statistics.mean(r['new_tokens'] for r in own):7.1f}")
    how = "measured" if len(rows) == len(cells) else f"from {len(rows)} of {len(cells)} cells"
    print(f"all cells: {total:.0f} s ({how})")
    print(f"kvpress takes {total / max(kvlab_seconds):.1f} to {total / min(kvlab_seconds):.1f} times "
          "as long as kvlab")


def main():
    args = ARGUMENTS
    if args.out:
        args.out.write_text("", encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prompts = folder / str(args.length)
        prompts.mkdir()
        records = write_prompts(args, prompts)
        write_sweep(args, prompts, folder / "sweep.json")
        first, cells = run_kvlab(args, folder / "sweep.json", folder / "first.sqlite")
        print(f"kvlab: {first:.1f} s", file=sys.stderr)
        rows = run_kvpress(args, records, cells, choose_cells(args, cells))
        seconds = [first]
        if not args.once:
            seconds.append(run_kvlab(args, folder / "sweep.json", folder / "second.sqlite")[0])
        print_summary(args, cells, seconds, rows)


if __name__ == "__main__":
    main()
