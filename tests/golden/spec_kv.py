"""SpecKV (arXiv 2506.08373), independent reference with transformers only.

    python spec_kv.py tiny-gqa
    python spec_kv.py smollm2 [--model DIR]

A draft of L tokens is written greedily over a full cache, by the model itself (`self`) or by its
first layers with the final norm and head (`first10`, tiny: `first1`). The target reads prompt and
draft in one pass. Queries are the draft's rows and the last prompt rows; softmax over all keys,
draft included, causal; columns before the window; maximum over rows and query heads of a group;
max-pool 7; the best budget - 32 columns, and the window.

Two readings of the window:
    w32   32 prompt rows ask; the last 32 prompt tokens stay: budget entries in all.
    w33   as published: 32 + L + 1 rows ask; budget - 32 are chosen before the last 33 prompt
          tokens, of which the last is dropped and fed again: budget + 1 entries once it is back,
          which is what is stored.

Writes methods/speckv-MODEL.safetensors; for prompt length LEN, CASE = {drafter}.d{L}.{w32|w33}.n{budget}:
    LEN.prompt_ids                  int32 [LEN]
    LEN.CASE.kept, .counts, .lowest_kept, .highest_dropped     as in kvpress/ (see README.md)
    LEN.{drafter}.d{L}.draft_ids    int32 [L];  .draft_margin float32 [1]
"""

import argparse
import copy

import torch

import common
import eviction


def shallow(model, layers):
    """The model's own first layers with its final norm and head, as a drafter."""
    small = copy.copy(model)
    small.config = copy.deepcopy(model.config)
    small.config.num_hidden_layers = layers
    small._modules = dict(model._modules)
    inner = copy.copy(model.model)
    inner.config = small.config
    inner._modules = dict(model.model._modules)
    inner._modules["layers"] = model.model.layers[:layers]
    small._modules["model"] = inner
    return small


def write_draft(drafter, ids, count):
    prompt = eviction.prefill(drafter, ids)
    return eviction.draft(drafter, prompt, eviction.full_selection(prompt), count)


def select(read, length, budget, prompt_rows, window=32, kernel=7):
    """read: the target's pass over prompt and draft; prompt_rows: 32 or 33 rows of the prompt."""
    rows = read.length - length + prompt_rows
    visible = eviction.causal_tail(rows, read.length)
    choice = eviction.Choice()
    for queries, keys in zip(read.queries, read.keys):
        weights = eviction.attention(queries[:, -rows:], keys, visible)
        before = weights[:, :, : length - prompt_rows]
        scores = before.reshape(keys.shape[0], -1, before.shape[-1]).amax(dim=1)
        choice.add_layer(eviction.max_pool(scores, kernel), [budget - window] * keys.shape[0],
                         prompt_rows)
    return choice


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    eviction.model_arguments(parser)
    args = parser.parse_args()
    common.set_up()
    model, weights_hash, prompts = eviction.model_and_prompts(args)
    first = 1 if args.which == "tiny-gqa" else 10
    cases = [("self", model, 8, (32,)), ("self", model, 32, (32, 33)),
             (f"first{first}", shallow(model, first), 32, (32,))]
    tensors, stopped = {}, {}
    for length, ids in prompts.items():
        tensors[f"{length}.prompt_ids"] = torch.tensor(ids, dtype=torch.int32)
        for drafter, drafting_model, count, readings in cases:
            made = write_draft(drafting_model, ids, count)
            name = f"{length}.{drafter}.d{count}"
            stopped[name] = made.stopped
            tensors.update(eviction.draft_tensors(name, made))
            read = eviction.prefill(model, ids + made.ids)
            for rows in readings:
                for budget in args.budgets:
                    choice = select(read, length, budget, rows)
                    tensors.update(eviction.tensors_of(f"{name}.w{rows}.n{budget}", choice))
            print(name, "margin", round(made.margin, 4), "stopped", made.stopped, flush=True)
    common.save_golden(common.HERE / "methods" / f"speckv-{args.which}.safetensors", tensors,
                       __file__, draft_stopped=stopped, weights_sha256=weights_hash,
                       parameters={"window": 32, "kernel": 7, "rows": "max", "group": "max",
                                   "pooling": "max"})


if __name__ == "__main__":
    main()
