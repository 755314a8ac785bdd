"""What the independent implementations of the eviction methods share.

A model is loaded through transformers with an attention function of our own, which computes plain
eager attention and keeps the queries and keys it was given (after rotary embedding). Everything
else works on those tensors in float32:

    Prompt.queries[layer]  [num_heads, prompt_len, head_dim]
    Prompt.keys[layer]     [num_kv_heads, prompt_len, head_dim]

Choices that all methods share: one selection per KV head; scores are reduced over query rows, then
over the query heads of a group, then pooled; of equal scores the lower position is kept.
"""

import dataclasses
import pathlib

import torch
from transformers import AttentionInterface, DynamicCache
from transformers.masking_utils import AttentionMaskInterface, eager_mask

import common

RECORDER = None  # list that gets (layer, queries, keys, values) of every attention call


def recording_attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    if RECORDER is not None:
        RECORDER.append((module.layer_idx, query[0], key[0], value[0]))
    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, dim=1).transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = torch.softmax(scores.float(), dim=-1).to(query.dtype)
    out = weights @ value.repeat_interleave(group, dim=1)
    return out.transpose(1, 2), None


AttentionInterface.register("recording", recording_attention)
AttentionMaskInterface.register("recording", eager_mask)


def load(directory, dtype=torch.float32):
    return common.load_model(directory, "recording", dtype)


@dataclasses.dataclass
class Prompt:
    ids: list
    queries: list
    keys: list
    values: list
    logits: torch.Tensor  # of the last row

    @property
    def length(self):
        return len(self.ids)

    @property
    def group(self):
        return self.queries[0].shape[0] // self.keys[0].shape[0]


def run(model, ids, cache=None, positions=None):
    """One forward pass; returns the last row's logits and the recorded calls by layer."""
    global RECORDER
    RECORDER = []
    arguments = {} if positions is None else {"position_ids": torch.tensor([positions])}
    out = model(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=cache is not None,
                logits_to_keep=1, **arguments)
    calls, RECORDER = RECORDER, None
    assert [call[0] for call in calls] == list(range(model.config.num_hidden_layers))
    return out.logits[0, -1].float(), calls


def prefill(model, ids):
    logits, calls = run(model, ids)
    return Prompt(list(ids), [c[1] for c in calls], [c[2] for c in calls], [c[3] for c in calls],
                  logits)


def compact_cache(model, prompt, kept):
    """A transformers cache that holds the chosen entries; kept[layer][head] are equally long."""
    cache = DynamicCache(config=model.config)
    for layer, heads in enumerate(kept):
        index = torch.tensor(heads)[..., None].expand(-1, -1, prompt.keys[layer].shape[2])
        cache.update(prompt.keys[layer].gather(1, index)[None],
                     prompt.values[layer].gather(1, index)[None], layer)
    return cache


def full_selection(prompt):
    return [[list(range(prompt.length))] * keys.shape[0] for keys in prompt.keys]


@dataclasses.dataclass
class Draft:
    ids: list      # the tokens that were fed: ids[0] is the prompt's best next token
    queries: list  # per layer [num_heads, len(ids), head_dim]
    keys: list     # per layer [num_kv_heads, len(ids), head_dim]
    margin: float  # smallest distance between the best and the second-best logit on the way
    stopped: bool  # a stop id ended it early; the stop id itself is not fed and not in ids


def stop_ids(model):
    ids = model.config.eos_token_id
    return set(ids) if isinstance(ids, (list, tuple)) else {ids}


def draft(model, prompt, kept, num_tokens):
    """Greedy reply over the kept entries, at positions prompt_len, prompt_len + 1, ...

    The first token comes from the full prefill's logits. Every token is fed, the last one too, so
    that num_tokens tokens ask num_tokens queries.
    """
    cache = compact_cache(model, prompt, kept)
    layers = model.config.num_hidden_layers
    queries, keys = [[] for _ in range(layers)], [[] for _ in range(layers)]
    ids, logits, margin, stopped = [], prompt.logits, float("inf"), False
    for step in range(num_tokens):
        best = torch.topk(logits, 2)
        token = int(best.indices[0])
        if token in stop_ids(model):
            stopped = True
            break
        margin = min(margin, float(best.values[0] - best.values[1]))
        ids.append(token)
        logits, calls = run(model, [token], cache, [prompt.length + step])
        for layer, query, key, _ in calls:
            queries[layer].append(query)
            keys[layer].append(key[:, -1:])
    return Draft(ids, [torch.cat(q, dim=1) for q in queries], [torch.cat(k, dim=1) for k in keys],
                 margin, stopped)


def attention(queries, keys, visible=None):
    """Softmax weights [num_heads, rows, num_keys] in float32; visible: bool [rows, num_keys]."""
    group = queries.shape[0] // keys.shape[0]
    dots = queries.float() @ keys.float().repeat_interleave(group, dim=0).transpose(1, 2)
    dots = dots * queries.shape[-1] ** -0.5
    if visible is not None:
        dots = dots.masked_fill(~visible, float("-inf"))
    return torch.softmax(dots, dim=-1)


def causal_tail(rows, num_keys):
    """Row i of the last `rows` keys' own queries sees every key up to itself."""
    own = torch.arange(num_keys - rows, num_keys)
    return torch.arange(num_keys)[None, :] <= own[:, None]


def group_mean(scores, num_kv_heads):
    return scores.reshape(num_kv_heads, -1, *scores.shape[1:]).mean(dim=1)


def max_pool(scores, kernel=7):
    return torch.nn.functional.max_pool1d(scores[None], kernel, stride=1, padding=kernel // 2)[0]


def top(scores, count):
    """Ascending positions of the `count` best; of equal scores the lower position first."""
    order = torch.sort(scores, descending=True, stable=True).indices
    return sorted(order[:count].tolist())


def snapkv_scores(prompt, layer, window=32, kernel=7):
    """[num_kv_heads, prompt_len - window]: what the last `window` queries look at."""
    keys = prompt.keys[layer]
    queries = prompt.queries[layer][:, -window:]
    weights = attention(queries, keys, causal_tail(window, prompt.length))
    scores = group_mean(weights.mean(dim=1), keys.shape[0])[:, : prompt.length - window]
    return max_pool(scores, kernel)


def with_tail(kept, first, length):
    return kept + list(range(first, length))


@dataclasses.dataclass
class Choice:
    """A selection with the scores at its border, per layer and KV head."""

    kept: list = dataclasses.field(default_factory=list)
    lowest_kept: list = dataclasses.field(default_factory=list)
    highest_dropped: list = dataclasses.field(default_factory=list)

    def add_layer(self, scores, counts, tail):
        """Keeps the best counts[head] of scores [heads, columns] and the `tail` entries after."""
        columns = scores.shape[1]
        heads, low, high = [], [], []
        for head, count in enumerate(counts):
            best = top(scores[head], count)
            rest = scores[head].clone()
            rest[best] = float("-inf")
            heads.append(with_tail(best, columns, columns + tail))
            low.append(float(scores[head][best].min()) if best else float("inf"))
            high.append(float(rest.max()))
        self.kept.append(heads)
        self.lowest_kept.append(low)
        self.highest_dropped.append(high)


def uniform(prompt, layer_scores, budget, tail):
    """layer_scores(layer) -> [heads, prompt_len - tail]; budget - tail of them, and the tail."""
    choice = Choice()
    for layer in range(len(prompt.keys)):
        scores = layer_scores(layer)
        choice.add_layer(scores, [budget - tail] * scores.shape[0], tail)
    return choice


def snapkv(prompt, budget, window=32, kernel=7):
    return uniform(prompt, lambda layer: snapkv_scores(prompt, layer, window, kernel), budget,
                   window)


def tensors_of(prefix, choice):
    flat = [p for layer in choice.kept for head in layer for p in head]
    counts = [[len(head) for head in layer] for layer in choice.kept]
    return {f"{prefix}.kept": common.to_int16(flat), f"{prefix}.counts": common.to_int16(counts),
            f"{prefix}.lowest_kept": torch.tensor(choice.lowest_kept),
            f"{prefix}.highest_dropped": torch.tensor(choice.highest_dropped)}


def draft_tensors(prefix, made):
    return {f"{prefix}.draft_ids": torch.tensor(made.ids, dtype=torch.int32),
            f"{prefix}.draft_margin": torch.tensor([made.margin])}


# Prompts of the tiny model whose drafts meet no stop id and no near tie (margins above 0.005).
TINY_ATTEMPTS = {300: 6, 1000: 2}


def model_arguments(parser):
    parser.add_argument("which", choices=("tiny-gqa", "smollm2"))
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--lengths", type=int, nargs="*", default=(300, 1000))
    parser.add_argument("--budgets", type=int, nargs="*", default=(64, 128))


def model_and_prompts(args):
    """The model, its weights' hash and the prompts by length that the arguments ask for."""
    tiny = args.which != "smollm2"
    directory = args.model or (common.MODELS / args.which if tiny else common.default_smollm2_dir())
    model = load(directory)
    prompts = {}
    for length in args.lengths:
        attempt = TINY_ATTEMPTS.get(length, 0)
        prompts[length] = (common.tiny_prompt(args.which, length, model.config.vocab_size, attempt)
                           if tiny else common.smollm2_prompts()[str(length)])
    return model, common.model_hash(directory), prompts
