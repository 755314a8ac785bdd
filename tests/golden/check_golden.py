"""Makes the small golden files again and compares; checks the references against each other.

    python check_golden.py [--keep DIR]

1. Every file that needs no downloaded model is made anew in a temporary folder: integers must be
   equal, floats within 1e-5 (logits 1e-4), weights bit for bit.
2. Every feature of the tiny models matters: switched off, the last row's logits move by more than
   0.01, ten times the tests' tolerance.
3. Where the independent references and kvpress read a method alike (SnapKV without pooling, TOVA
   with the last token forced in), they keep the same entries on the same prompt, up to ties within
   rounding.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

import common

REMAKE = (["make_transformers_logits.py", "tiny"], ["make_kvpress_selections.py", "tiny-gqa"],
          ["lookahead_q_cache.py", "tiny-gqa"], ["spec_kv.py", "tiny-gqa"],
          ["paper_readings.py", "tiny-gqa"], ["lookahead_kv.py", "adapters"],
          ["lookahead_kv.py", "golden"])


def compare_file(committed, made):
    old, _ = common.read_tensors(committed)
    new, _ = common.read_tensors(made)
    problems = [] if old.keys() == new.keys() else ["different tensors"]
    for key in old.keys() & new.keys():
        if old[key].dtype != new[key].dtype or old[key].shape != new[key].shape:
            problems.append(f"{key}: type or shape")
        elif not old[key].is_floating_point() or "models" in committed.parts:
            if not torch.equal(old[key], new[key]):
                problems.append(f"{key}: not equal")
        elif not key.endswith("margin"):
            limit = 1e-4 if "logits" in key else 1e-5
            if not torch.allclose(old[key], new[key], rtol=limit, atol=limit):
                problems.append(f"{key}: {float((old[key] - new[key]).abs().max()):.1e} apart")
    return problems


def remake(folder):
    environment = {**os.environ, "KVLAB_GOLDEN_OUT": str(folder)}
    subprocess.run([sys.executable, str(common.HERE / "make_tiny_models.py"), "--out",
                    str(folder / "models")], check=True)
    for command in REMAKE:
        subprocess.run([sys.executable, str(common.HERE / command[0]), *command[1:]], check=True,
                       env=environment, stdout=subprocess.DEVNULL)
    failures = 0
    for made in sorted(folder.rglob("*.safetensors")):
        name = made.relative_to(folder)
        problems = compare_file(common.HERE / name, made)
        failures += bool(problems)
        print(f"{'DIFFERS' if problems else 'equal'}: {name} {'; '.join(problems[:5])}")
    return failures


def logits_with(name, edit=None, length=None):
    """The last row's logits on the longest golden prompt after `edit` of config and weights."""
    golden, _ = common.read_tensors(common.HERE / "transformers" / f"{name}.safetensors")
    length = length or max(int(k.split(".")[0]) for k in golden if k.endswith("prompt_ids"))
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder)
        for file in (common.MODELS / name).iterdir():
            (target / file.name).symlink_to(file)
        config = json.loads((common.MODELS / name / "config.json").read_text())
        model_edit = edit(config) if edit else None
        (target / "config.json").unlink()
        (target / "config.json").write_text(json.dumps(config))
        model = common.load_model(target)
    if model_edit:
        model_edit(model)
    ids = golden[f"{length}.prompt_ids"].long()[None]
    return model(input_ids=ids, logits_to_keep=1).logits[0, -1], golden[f"{length}.logits"]


def set_default_rope(config):
    if "rope_parameters" in config:
        config["rope_parameters"] = {"rope_type": "default",
                                     "rope_theta": config["rope_parameters"]["rope_theta"]}
    else:
        config["rope_scaling"] = None


def without(suffix, value):
    def edit_model(model):
        for key, parameter in model.named_parameters():
            if key.endswith(suffix):
                parameter.fill_(value)

    return lambda config: edit_model


def no_window(config):
    config["sliding_window"] = None


def theta(config):
    if "rope_parameters" in config:
        config["rope_parameters"]["rope_theta"] = 500000.0
    else:
        config["rope_theta"] = 500000.0


def features_matter():
    cases = [("tiny-llama3", "rope scaling", set_default_rope),
             ("tiny-llama-yarn", "rope scaling", set_default_rope),
             ("tiny-llama-linear", "rope scaling", set_default_rope),
             ("tiny-qwen2", "query bias", without("q_proj.bias", 0)),
             ("tiny-qwen2", "key bias", without("k_proj.bias", 0)),
             ("tiny-qwen2", "value bias", without("v_proj.bias", 0)),
             ("tiny-qwen3", "query norm", without("q_norm.weight", 1)),
             ("tiny-qwen3", "key norm", without("k_norm.weight", 1)),
             ("tiny-mistral-window", "sliding window", no_window),
             ("tiny-gqa", "rope theta", theta), ("tiny-mistral", "rope theta", theta)]
    failures = 0
    for name, what, edit in cases:
        got, golden = logits_with(name)
        assert (got - golden).abs().max() < 1e-4, name
        changed, _ = logits_with(name, edit)
        move = float((changed - golden).abs().max())
        failures += move <= 0.01
        print(f"{'matters' if move > 0.01 else 'NO EFFECT'}: {name}, {what}: {move:.3f}")
    return failures


def references_agree():
    import eviction
    import paper_readings

    golden, _ = common.read_tensors(common.HERE / "kvpress" / "tiny-gqa.safetensors")
    model = eviction.load(common.MODELS / "tiny-gqa")
    failures = 0
    for length in (300, 1000):
        prompt = eviction.prefill(model, golden[f"{length}.prompt_ids"].tolist())
        for case, budget in (("snapkv_w32_k1", 64), ("snapkv_w32_k1", 128), ("tova", 64),
                             ("tova", 128)):
            mine = (paper_readings.tova(prompt, budget, forced=1) if case == "tova"
                    else eviction.snapkv(prompt, budget, 32, 1))
            kept = golden[f"{length}.{case}.n{budget}.kept"].view(len(mine.kept), -1, budget)
            low = golden[f"{length}.{case}.n{budget}.lowest_kept"]
            high = golden[f"{length}.{case}.n{budget}.highest_dropped"]
            wrong = 0
            for layer, heads in enumerate(mine.kept):
                for head, positions in enumerate(heads):
                    tie = low[layer, head] - high[layer, head] < 1e-6
                    wrong += positions != kept[layer, head].tolist() and not tie
            failures += bool(wrong)
            print(f"{'agree' if not wrong else 'DISAGREE'}: {case}, {length} tokens, {budget} kept")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-remake", action="store_true", help="only steps 2 and 3")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the files made anew")
    args = parser.parse_args()
    common.set_up()
    failures = features_matter() + references_agree()
    if args.no_remake:
        pass
    elif args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        failures += remake(args.keep.resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            failures += remake(pathlib.Path(folder))
    if failures:
        common.fail(f"{failures} checks failed")
    print("all golden files confirmed")


if __name__ == "__main__":
    main()
