"""Lookahead Q-Cache (LAQ, LAQ++; arXiv 2505.20334), independent reference with transformers only.

    python lookahead_q_cache.py tiny-gqa
    python lookahead_q_cache.py smollm2 [--model DIR]

Stage 1: SnapKV (window 32, mean over rows and group, max-pool 7) at the target budget. A draft of 8
or 32 tokens is decoded greedily on that small cache from position prompt_len on. Stage 2: queries
of the last `window` prompt tokens and of the draft; keys of the prompt only; softmax, mean over
rows and group, columns before the window, max-pool 7, the best budget - window, and the window.

Masks: `corrected` hides from each of the window's prompt queries the prompt tokens after it, and
nothing from the draft's queries. `official` lays a square causal mask over the last
window + draft columns for window + draft rows, as the published code does.

Writes methods/laq-MODEL.safetensors; for each prompt length LEN and case
CASE = d{draft}.w{window}.{mask}.n{budget}:
    LEN.prompt_ids                  int32 [LEN]
    LEN.CASE.kept, .counts, .lowest_kept, .highest_dropped     as in kvpress/ (see README.md)
    LEN.d{draft}.n{budget}.draft_ids     int32 [draft], the tokens fed
    LEN.d{draft}.n{budget}.draft_margin  float32 [1]
"""

import argparse

import torch

import common
import eviction


def visible_prompt(rows_window, rows_draft, length, mask):
    """bool [window + draft rows, prompt keys]."""
    rows = rows_window + rows_draft
    visible = torch.ones(rows, length, dtype=torch.bool)
    if mask == "official":
        visible[:, length - rows:] = torch.tril(torch.ones(rows, rows, dtype=torch.bool))
    elif rows_window > 0:
        visible[:rows_window] = eviction.causal_tail(rows_window, length)
    return visible


def select(prompt, made, budget, window, mask, kernel=7):
    length = prompt.length
    visible = visible_prompt(window, len(made.ids), length, mask)

    def scores(layer):
        own = prompt.queries[layer][:, length - window:]
        queries = torch.cat([own, made.queries[layer]], dim=1)
        weights = eviction.attention(queries, prompt.keys[layer], visible)
        reduced = eviction.group_mean(weights.mean(dim=1), prompt.keys[layer].shape[0])
        return eviction.max_pool(reduced[:, : length - window], kernel)

    return eviction.uniform(prompt, scores, budget, window)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    eviction.model_arguments(parser)
    args = parser.parse_args()
    common.set_up()
    model, weights_hash, prompts = eviction.model_and_prompts(args)
    tensors, stopped = {}, {}
    for length, ids in prompts.items():
        tensors[f"{length}.prompt_ids"] = torch.tensor(ids, dtype=torch.int32)
        prompt = eviction.prefill(model, ids)
        for budget in args.budgets:
            first_stage = eviction.snapkv(prompt, budget)
            for num_draft in (8, 32):
                made = eviction.draft(model, prompt, first_stage.kept, num_draft)
                name = f"{length}.d{num_draft}.n{budget}"
                stopped[name] = made.stopped
                tensors.update(eviction.draft_tensors(name, made))
                for window in (0, 8):
                    for mask in ("corrected", "official"):
                        choice = select(prompt, made, budget, window, mask)
                        case = f"{length}.d{num_draft}.w{window}.{mask}.n{budget}"
                        tensors.update(eviction.tensors_of(case, choice))
                print(name, "margin", round(made.margin, 4), "stopped", made.stopped, flush=True)
    common.save_golden(common.HERE / "methods" / f"laq-{args.which}.safetensors", tensors, __file__,
                       draft_stopped=stopped, weights_sha256=weights_hash,
                       stage1={"method": "snapkv", "window": 32, "kernel": 7, "pooling": "max"},
                       stage2={"rows": "mean", "group": "mean", "kernel": 7, "pooling": "max"})


if __name__ == "__main__":
    main()
