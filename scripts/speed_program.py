"""kvlab's side of the comparisons: build/release/kvlab_speed, run once."""

import json
import subprocess
import sys


def run_speed_program(program, model, dtype, length, tokens, threads, shapes):
    """Milliseconds: {"prefill": ..., SHAPE: of a step}; a shape is ARMSxLENGTH."""
    command = [str(program), "--model", str(model), "--dtype", dtype, "--length", str(length),
               "--tokens", str(tokens), "--threads", str(threads)]
    if shapes:
        command += ["--decode", *shapes]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: exit status {done.returncode} of {' '.join(command)}\n{done.stderr[-500:]}")
    result = json.loads(done.stdout)
    return {"prefill": result["prefill_s"] * 1000,
            **{shape: result["decode_ms_per_step"][shape] for shape in shapes}}
