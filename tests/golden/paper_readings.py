"""The papers' (and their official codes') readings of the baselines, with transformers only.

    python paper_readings.py tiny-gqa
    python paper_readings.py smollm2 [--model DIR]

Where kvpress reads a method as its paper does, kvpress/ has it and nothing is repeated here. All
per KV head, float32, window entries inside the budget. n = prompt length, C = budget, w = 32.

    snapkv             mean over the last w queries (softmax over all keys, causal), mean over the
                       group, max-pool 7; best C - w before the window, and the window
    pyramidkv_kvcf     snapkv's scores; min = (C - w) // 20, max = 2 (C - w) - min, step =
                       (max - min) // (layers - 1), layer l: max - l * step and the window; the sum
                       overshoots
    pyramidkv_exact    the same line in real numbers, min = (C - w) / 20, layer l: max - l * (max -
                       min) / (layers - 1); rounded by largest remainder (equal remainders: lower
                       layer first) to C * layers in sum
    adakv_official     snapkv's scores; heads flattened, best heads * (C - w) of the layer counted
                       per head; round(count * 0.8 + 0.2 * (C - w)), half to even; and the window
    adakv_exact        the same, rounded by largest remainder (equal: lower head first) to
                       heads * (C - w) in sum
    h2o_half           attention summed over all queries, mean over the group, no pooling; best
                       C / 2 before the last C / 2, and those (heavy and recent alike)
    h2o_w32            the same with the last 32
    tova               last query's attention, mean over all heads of the layer; best C for every
                       head alike; the last token is not forced in
    oracle             queries of the model's own greedy reply over the full cache (32 tokens);
                       softmax over prompt and the reply up to the row itself; mean over rows and
                       group, max-pool 7; best C, nothing forced
    oracle_prompt_keys the same with the softmax over the prompt's keys only

Writes methods/papers-MODEL.safetensors; prompt length LEN, CASE = {method}.n{budget}:
    LEN.prompt_ids                  int32 [LEN]
    LEN.reply_ids                   int32 [32];  LEN.reply_margin float32 [1]
    LEN.CASE.kept, .counts, .lowest_kept, .highest_dropped     as in kvpress/ (see README.md)
    LEN.CASE.across_gap             float32 [layers], adakv: how far a head's last counted entry is
                                    above another head's best one that is not, as a share of its
                                    score, at the least; where that is rounding, an entry may count
                                    for the other head
"""

import argparse

import torch

import common
import eviction

WINDOW, KERNEL, BETA, FLOOR, REPLY = 32, 7, 20, 0.2, 32


def largest_remainder(values, total):
    floors = [int(v // 1) for v in values]
    # To a millionth: 76.8 - 76 and 114.8 - 114 are equal on paper, not in floating point.
    order = sorted(range(len(values)), key=lambda i: (-round(values[i] - floors[i], 6), i))
    for index in order[: total - sum(floors)]:
        floors[index] += 1
    assert sum(floors) == total
    return floors


def pyramid_counts(length, budget, layers, exact):
    """Chosen entries per layer, without the window."""
    base = budget - WINDOW
    if length < 2 * base:
        return [base] * layers
    low = base / BETA if exact else base // BETA
    high = 2 * base - low
    if high >= length - WINDOW:
        high = length - WINDOW
        low = 2 * base - high
    if not exact:
        step = (high - low) // (layers - 1)
        return [high - layer * step for layer in range(layers)]
    step = (high - low) / (layers - 1)
    # Rounded to a millionth, so that remainders equal on paper are equal here.
    return largest_remainder([round(high - layer * step, 6) for layer in range(layers)],
                             base * layers)


def pyramidkv(prompt, budget, exact):
    counts = pyramid_counts(prompt.length, budget, len(prompt.keys), exact)
    choice = eviction.Choice()
    for layer, count in enumerate(counts):
        scores = eviction.snapkv_scores(prompt, layer, WINDOW, KERNEL)
        choice.add_layer(scores, [count] * scores.shape[0], WINDOW)
    return choice


def gap_between_heads(scores, best):
    counted = torch.zeros(scores.numel(), dtype=torch.bool)
    counted[best] = True
    counted = counted.view_as(scores)
    low = scores.masked_fill(~counted, float("inf")).amin(dim=1)
    high = scores.masked_fill(counted, float("-inf")).amax(dim=1)
    gaps = (low[:, None] - high[None, :]) / low[:, None]
    gaps.fill_diagonal_(float("inf"))
    return float(gaps.nan_to_num(float("inf")).min())


def adakv(prompt, budget, exact):
    base = budget - WINDOW
    choice = eviction.Choice()
    gaps = []
    for layer in range(len(prompt.keys)):
        scores = eviction.snapkv_scores(prompt, layer, WINDOW, KERNEL)
        heads, columns = scores.shape
        best = eviction.top(scores.flatten(), heads * base)
        gaps.append(gap_between_heads(scores, best))
        shares = [sum(1 for p in best if p // columns == head) for head in range(heads)]
        values = [round(share * (1 - FLOOR) + FLOOR * base, 6) for share in shares]
        counts = (largest_remainder(values, heads * base) if exact
                  else [round(value) for value in values])
        choice.add_layer(scores, counts, WINDOW)
    return choice, torch.tensor(gaps)


def received(prompt, layer):
    """Attention that every key gets over all queries, mean over the group: [kv_heads, n]."""
    weights = eviction.attention(prompt.queries[layer], prompt.keys[layer],
                                 eviction.causal_tail(prompt.length, prompt.length))
    return eviction.group_mean(weights.sum(dim=1), prompt.keys[layer].shape[0])


def h2o(prompt, sums, budget, recent):
    return eviction.uniform(prompt, lambda layer: sums[layer][:, : prompt.length - recent], budget,
                            recent)


def tova(prompt, budget, forced=0):
    """forced: 1 keeps the last token whatever its score (kvpress's reading)."""

    def scores(layer):
        weights = eviction.attention(prompt.queries[layer][:, -1:], prompt.keys[layer])
        mass = weights[:, 0].mean(dim=0)[: prompt.length - forced]
        return mass.expand(prompt.keys[layer].shape[0], -1)

    return eviction.uniform(prompt, scores, budget, forced)


def oracle(prompt, reply, budget, own_keys):
    rows = len(reply.ids)

    def scores(layer):
        keys, visible = prompt.keys[layer], None
        if own_keys:
            keys = torch.cat([keys, reply.keys[layer]], dim=1)
            visible = eviction.causal_tail(rows, prompt.length + rows)
        weights = eviction.attention(reply.queries[layer], keys, visible)
        mass = weights.mean(dim=1)[:, : prompt.length]
        return eviction.max_pool(eviction.group_mean(mass, keys.shape[0]), KERNEL)

    return eviction.uniform(prompt, scores, budget, 0)


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
        reply = eviction.draft(model, prompt, eviction.full_selection(prompt), REPLY)
        tensors[f"{length}.reply_ids"] = torch.tensor(reply.ids, dtype=torch.int32)
        tensors[f"{length}.reply_margin"] = torch.tensor([reply.margin])
        stopped[str(length)] = reply.stopped
        sums = [received(prompt, layer) for layer in range(len(prompt.keys))]
        for budget in args.budgets:
            adakv_official, gaps = adakv(prompt, budget, exact=False)
            adakv_exact, _ = adakv(prompt, budget, exact=True)
            made = {
                "snapkv": eviction.snapkv(prompt, budget, WINDOW, KERNEL),
                "pyramidkv_kvcf": pyramidkv(prompt, budget, exact=False),
                "pyramidkv_exact": pyramidkv(prompt, budget, exact=True),
                "adakv_official": adakv_official,
                "adakv_exact": adakv_exact,
                "h2o_half": h2o(prompt, sums, budget, budget // 2),
                "h2o_w32": h2o(prompt, sums, budget, 32),
                "tova": tova(prompt, budget),
                "oracle": oracle(prompt, reply, budget, own_keys=True),
                "oracle_prompt_keys": oracle(prompt, reply, budget, own_keys=False),
            }
            for name, choice in made.items():
                tensors.update(eviction.tensors_of(f"{length}.{name}.n{budget}", choice))
                if name.startswith("adakv"):
                    tensors[f"{length}.{name}.n{budget}.across_gap"] = gaps.clone()
        print(length, "reply margin", round(reply.margin, 4), "stopped", reply.stopped, flush=True)
    common.save_golden(common.HERE / "methods" / f"papers-{args.which}.safetensors", tensors,
                       __file__, reply_stopped=stopped, weights_sha256=weights_hash,
                       parameters={"window": WINDOW, "kernel": KERNEL, "beta": BETA,
                                   "floor": FLOOR, "reply_tokens": REPLY})


if __name__ == "__main__":
    main()
