"""Positions that kvpress's presses keep, per layer and KV head, in float32.

    python make_kvpress_selections.py tiny-gqa
    python make_kvpress_selections.py smollm2 [--model DIR]

The presses run inside kvpress's own forward hook during one prefill; what they keep is read off the
index tensor that their `compress` gives to `Tensor.gather` (for AdaKV, off the positions it marks
as masked). No selection code is repeated here. ObservedAttention runs with eager attention, all
others with sdpa (AdaKV refuses eager).

Writes kvpress/MODEL.safetensors. For each length LEN (300, 1000, 4000) and case CASE (the press and
its number of kept entries, e.g. `snapkv_w32_k5.n64`):
    LEN.prompt_ids              int32 [LEN]
    LEN.CASE.kept               int16 [sum of counts]  positions, ascending within each layer and
                                head; layers outermost, then KV heads
    LEN.CASE.counts             int16 [layers, kv_heads]
    LEN.CASE.lowest_kept        float32 [layers, kv_heads]  smallest score that stayed
    LEN.CASE.highest_dropped    float32 [layers, kv_heads]  largest score that went; where the two
                                are within rounding of each other the boundary is a tie
                                (AdaKV: highest_dropped is of the whole layer, repeated for its
                                heads; a head whose lowest_kept is below it was helped by the
                                safeguard)
    300.CASE.scores             float32 [kv_heads, 300]  of the middle layer, for debugging
Metadata `cases`: every case's press, all its parameters, its compression ratio and n_kept (in
kvpress's meaning: for PyramidKV the mean over the layers before its rounding).
"""

import argparse
import dataclasses
import pathlib

import torch
from torch.overrides import TorchFunctionMode

import common
import kvpress

LENGTHS = (300, 1000, 4000)


def ratio_for(n_kept, length):
    """The compression ratio for which kvpress keeps exactly n_kept of length entries."""
    ratio = 1 - n_kept / length
    while int(length * (1 - ratio)) < n_kept:
        ratio -= 2.0 ** -53
    assert int(length * (1 - ratio)) == n_kept
    return ratio


def make_cases(length):
    """Name -> (press, attention). Budgets count what stays, windows included."""
    cases = {}

    def add(name, budgets, make, attention="sdpa"):
        for n_kept in budgets:
            cases[f"{name}.n{n_kept}"] = (make(ratio_for(n_kept, length)), attention)

    def snapkv(window, kernel):
        return lambda r: kvpress.SnapKVPress(r, window_size=window, kernel_size=kernel)

    small, large = (64, 128), (96, 160)
    add("snapkv", large, kvpress.SnapKVPress)
    add("snapkv_w32_k5", small, snapkv(32, 5))
    add("snapkv_w32_k7", small, snapkv(32, 7))
    add("snapkv_w32_k1", small, snapkv(32, 1))
    add("pyramidkv_w8_k5", (192, 256),
        lambda r: kvpress.PyramidKVPress(r, window_size=8, kernel_size=5))
    if length < 4000:  # at 1,000 its conditions fail and it turns into SnapKV
        add("pyramidkv", (160,), kvpress.PyramidKVPress)
    add("streaming_llm", small, kvpress.StreamingLLMPress)
    add("tova", small, kvpress.TOVAPress)
    add("knorm", small, kvpress.KnormPress)
    add("keydiff", small, kvpress.KeyDiffPress)
    add("expected_attention", small, kvpress.ExpectedAttentionPress)
    if length == 300:
        add("expected_attention_plain", (64,), lambda r: kvpress.ExpectedAttentionPress(
            r, use_covariance=False, use_vnorm=False))
    add("adakv_snapkv", large, lambda r: kvpress.AdaKVPress(kvpress.SnapKVPress(r)))
    add("adakv_snapkv_w32_k7", small,
        lambda r: kvpress.AdaKVPress(snapkv(32, 7)(r), alpha_safeguard=0.2))
    add("observed_attention", small, kvpress.ObservedAttentionPress, "eager")
    return cases


def describe(press):
    facts = {"press": type(press).__name__}
    for field in dataclasses.fields(press):
        value = getattr(press, field.name)
        facts[field.name] = describe(value) if dataclasses.is_dataclass(value) else value
    return facts


class GatherIndices(TorchFunctionMode):
    """Remembers the indices given to Tensor.gather along the sequence."""

    def __init__(self):
        super().__init__()
        self.indices = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.gather and args[1] == 2:
            self.indices.append(args[2][..., 0].clone())
        return func(*args, **(kwargs or {}))


@dataclasses.dataclass
class Record:
    kept: list = dataclasses.field(default_factory=list)  # [layer][head] -> ascending positions
    lowest_kept: list = dataclasses.field(default_factory=list)
    highest_dropped: list = dataclasses.field(default_factory=list)
    scores: list = dataclasses.field(default_factory=list)


class RunAll(kvpress.BasePress):
    """Runs many presses on the same layer inputs and records what each keeps; evicts nothing."""

    def __init__(self, presses):
        self.presses = presses
        self.records = {name: Record() for name in presses}
        self.seen_scores = None
        for press in presses.values():
            scorer = press.press if isinstance(press, kvpress.AdaKVPress) else press
            scorer.score = self.remember(scorer.score)

    def remember(self, score):
        def wrapped(*args, **kwargs):
            result = score(*args, **kwargs)
            self.seen_scores = result[0].clone()
            return result

        return wrapped

    def post_init_from_model(self, model):
        for press in self.presses.values():
            press.post_init_from_model(model)

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        length = keys.shape[2]
        for name, press in self.presses.items():
            with GatherIndices() as spy:
                press.compress(module, hidden_states, keys.clone(), values.clone(), attentions,
                               kwargs)
            keep = torch.zeros(keys.shape[1], length, dtype=torch.bool)
            if isinstance(press, kvpress.AdaKVPress):
                _, heads, positions = module.masked_key_indices
                keep[:] = True
                keep[heads, positions] = False
                module.masked_key_indices = None
            else:
                assert len(spy.indices) == 2 and torch.equal(spy.indices[0], spy.indices[1])
                keep.scatter_(1, spy.indices[0][0], True)
                assert int(keep.sum()) == spy.indices[0][0].numel()
            self.note(self.records[name], keep, isinstance(press, kvpress.AdaKVPress))
        return keys, values

    def note(self, record, keep, whole_layer):
        scores = self.seen_scores.float()
        low = torch.where(keep, scores, float("inf")).min(dim=1).values
        high = torch.where(keep, float("-inf"), scores).max(dim=1).values
        if whole_layer:  # its safeguard keeps some entries below the layer's threshold
            high = high.max().expand(len(high))
        record.kept.append([torch.nonzero(row).flatten().tolist() for row in keep])
        record.lowest_kept.append(low)
        record.highest_dropped.append(high)
        record.scores.append(scores)


def tensors_of(prefix, record, with_scores):
    flat = [p for layer in record.kept for head in layer for p in head]
    counts = [[len(head) for head in layer] for layer in record.kept]
    tensors = {f"{prefix}.kept": common.to_int16(flat),
               f"{prefix}.counts": common.to_int16(counts),
               f"{prefix}.lowest_kept": torch.stack(record.lowest_kept),
               f"{prefix}.highest_dropped": torch.stack(record.highest_dropped)}
    if with_scores:
        tensors[f"{prefix}.scores"] = record.scores[len(record.scores) // 2]
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("tiny-gqa", "smollm2"))
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    args = parser.parse_args()
    common.set_up()
    tiny = args.which != "smollm2"
    directory = args.model or (common.MODELS / args.which if tiny else common.default_smollm2_dir())
    models = {kind: common.load_model(directory, kind) for kind in ("sdpa", "eager")}
    tensors, facts = {}, {}
    for length in args.lengths:
        vocab = models["sdpa"].config.vocab_size
        ids = (common.tiny_prompt(args.which, length, vocab) if tiny
               else common.smollm2_prompts()[str(length)])
        tensors[f"{length}.prompt_ids"] = torch.tensor(ids, dtype=torch.int32)
        cases = make_cases(length)
        for kind, model in models.items():
            runner = RunAll({n: press for n, (press, k) in cases.items() if k == kind})
            with runner(model):
                model(input_ids=torch.tensor([ids]), logits_to_keep=1, use_cache=True)
            for name, record in runner.records.items():
                prefix = f"{length}.{name}"
                tensors.update(tensors_of(prefix, record, length == 300))
                facts[prefix] = {"n_kept": int(name.rsplit(".n", 1)[1]),
                                 **describe(cases[name][0])}
            print(f"{args.which} {length} {kind} done", flush=True)
    common.save_golden(common.HERE / "kvpress" / f"{args.which}.safetensors", tensors, __file__,
                       ("torch", "transformers", "kvpress"), cases=facts,
                       weights_sha256=common.model_hash(directory))


if __name__ == "__main__":
    main()
