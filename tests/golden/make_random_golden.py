#!/usr/bin/env python3
"""Draws of CPython's random and NumPy's legacy generator, for tests/datasets/python_random_test.cpp.

Run with a Python that has NumPy; writes ruler/random.json.
"""

import hashlib
import json
import pathlib
import platform
import random
import string

import numpy


def mixed_draws(seed):
    """A long run of mixed draws, as text, so that one hash covers every kind of draw."""
    rng = random.Random(seed)
    parts = []
    for turn in range(400):
        parts.append(str(rng.getrandbits(1 + turn % 64)))
        parts.append(str(rng.randint(10**6, 10**7 - 1)))
        parts.append(str(rng.randrange(1 + turn * turn * 977)))
        parts.append(rng.random().hex())
        parts.append("".join(rng.choices(string.ascii_uppercase, k=1 + turn % 7)))
        parts.append(",".join(map(str, rng.sample(range(1 + turn * 3), min(turn, 1 + turn * 3)))))
        parts.append(",".join(map(str, rng.sample(range(40), turn % 7))))
        items = list(range(turn % 50))
        rng.shuffle(items)
        parts.append(",".join(map(str, items)))
        parts.append(f"{rng.getrandbits(128):032x}")
    return ";".join(parts)


def first_draws(seed):
    rng = random.Random(seed)
    return {
        "bits32": [rng.getrandbits(32) for _ in range(5)],
        "randint": [rng.randint(10**6, 10**7 - 1) for _ in range(5)],
        "letters": ["".join(rng.choices(string.ascii_lowercase, k=6)) for _ in range(3)],
        "sample_pool": rng.sample(range(20), 5),
        "sample_set": rng.sample(range(1000), 5),
        "bits128": f"{rng.getrandbits(128):032x}",
    }


def numpy_draws(seed):
    numpy.random.seed(seed)
    return [int(numpy.random.randint(10000, 99999)) for _ in range(1000)]


def main():
    seeds = [0, 1, 42, 43, 2**31, 2**32 - 1, 2**32, 2**64 - 1]
    golden = {
        "made_with": {"python": platform.python_version(), "numpy": numpy.__version__},
        "seeds": [
            {
                "seed": str(seed),
                "first": first_draws(seed),
                "mixed_sha256": hashlib.sha256(mixed_draws(seed).encode()).hexdigest(),
            }
            for seed in seeds
        ],
        "numpy_randint": [
            {
                "seed": seed,
                "first": numpy_draws(seed)[:5],
                "sha256": hashlib.sha256(",".join(map(str, numpy_draws(seed))).encode()).hexdigest(),
            }
            for seed in seeds
            if seed < 2**32
        ],
    }
    path = pathlib.Path(__file__).parent / "ruler/random.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
