"""LookaheadKV (arXiv 2603.10899): naive reference of its inference and of its training loss.

    python lookahead_kv.py adapters               random adapters for two tiny models
    python lookahead_kv.py golden                 scores, loss and gradients with them
    python lookahead_kv.py compare --model DIR --adapter FILE --scores FILE
                                                  against scores computed elsewhere

Everything is one eager forward over [prompt; lookahead rows] (or [prompt; reply]) through the
transformers modules of the base model, layer by layer; low-rank updates (scale alpha / rank) are
added on the lookahead rows of every linear layer that the adapter has. Scores: softmax of the
lookahead rows over prompt and earlier lookahead keys, prompt columns, mean over rows. Loss: mean
over layers and query heads of KL(truth || scores), both divided by their sum over the prompt, no
epsilon; truth: the same mean over the reply's rows without adapter. Gradients: autograd through the
whole forward, prompt rows included, in float64.

adapters writes models/tiny-gqa.adapter.safetensors (32 tokens, rank 8, alpha 32; last layer q and k
only) and models/tiny-qwen3.adapter.safetensors (12 tokens, rank 4, alpha 8): float32 tensors
`lookahead_tokens` [tokens, hidden], `layers.L.BLOCK.lora_A` [rank, in], `.lora_B` [out, rank].
golden writes lookahead_kv/MODEL.safetensors:
    prompt_ids int32 [N], reply_ids int32 [R] (the model's own greedy reply)
    scores           float32 [layers, num_heads, N]   computed in float32
    last_logits      float32 [vocab]                  of the last prompt row, same pass
    n{B}.kept, .counts, .lowest_kept, .highest_dropped  group mean, max-pool 7, best B (32, 64)
    loss             float64 [1];  divergence float64 [layers, num_heads]
    truth            float64 [num_heads, N]           of layer layers / 2, before its division
    grad.NAME        float64, as the adapter's tensor NAME
"""

import argparse
import pathlib

import torch
from safetensors.torch import save_file
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import common
import eviction

LINEARS = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
           "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
           "down": "mlp.down_proj"}
TINY = {"tiny-gqa": dict(tokens=32, rank=8, alpha=32, seed=21, prompt=256, reply=40),
        "tiny-qwen3": dict(tokens=12, rank=4, alpha=8, seed=22, prompt=203, reply=33)}


class Adapter:
    """Tensors by name; `scale` is alpha / rank."""

    def __init__(self, tensors, scale):
        self.tensors, self.scale = tensors, scale

    @staticmethod
    def read(path, dtype):
        tensors, info = common.read_tensors(path)
        scale = float(info["lora_alpha"]) / int(info["lora_rank"])
        return Adapter({name: t.to(dtype) for name, t in tensors.items()}, scale)

    def linear(self, layer, block, module, rows, first):
        """The base layer on every row, and the update on rows `first` and after."""
        out = module(rows)
        a = self.tensors.get(f"layers.{layer}.{block}.lora_A")
        if a is None or first >= rows.shape[0]:
            return out
        b = self.tensors[f"layers.{layer}.{block}.lora_B"]
        update = self.scale * (rows[first:] @ a.T) @ b.T
        return torch.cat([out[:first], out[first:] + update])


NONE = Adapter({}, 0.0)


def attention_mass(model, embeddings, adapter, first):
    """One pass over rows [prompt; extra]; the extra rows start at `first`.

    Returns per layer the extra rows' mean softmax weight on the prompt's columns, [num_heads,
    first], and the logits of row first - 1.
    """
    length = embeddings.shape[0]
    positions = torch.arange(length)[None]
    cos, sin = model.model.rotary_emb(embeddings[None], positions)
    hidden, masses = embeddings, []
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    for index, block in enumerate(model.model.layers):
        attn = block.self_attn

        def linear(name, rows):
            module = block.get_submodule(LINEARS[name])
            return adapter.linear(index, LINEARS[name], module, rows, first)

        normed = block.input_layernorm(hidden)
        q, k, v = (linear(name, normed).view(length, -1, attn.head_dim) for name in "qkv")
        if hasattr(attn, "q_norm"):
            q, k = attn.q_norm(q), attn.k_norm(k)
        q, k = apply_rotary_pos_emb(q.transpose(0, 1)[None], k.transpose(0, 1)[None], cos, sin)
        q, k, v = q[0], k[0], v.transpose(0, 1)
        group = q.shape[0] // k.shape[0]
        dots = q @ k.repeat_interleave(group, 0).transpose(1, 2) * attn.head_dim ** -0.5
        weights = torch.softmax(dots.masked_fill(~causal, float("-inf")), dim=-1)
        masses.append(weights[:, first:, :first].mean(dim=1))
        mixed = (weights @ v.repeat_interleave(group, 0)).transpose(0, 1).reshape(length, -1)
        hidden = hidden + linear("o", mixed)
        normed = block.post_attention_layernorm(hidden)
        inner = torch.nn.functional.silu(linear("gate", normed)) * linear("up", normed)
        hidden = hidden + linear("down", inner)
    logits = model.lm_head(model.model.norm(hidden[first - 1]))
    return masses, logits


def embed(model, ids):
    return model.model.embed_tokens(torch.tensor(ids))


def lookahead_scores(model, ids, adapter):
    rows = torch.cat([embed(model, ids), adapter.tensors["lookahead_tokens"]])
    return attention_mass(model, rows, adapter, len(ids))


def divergence(truth, scores):
    """KL(truth || scores) per head after dividing both by their sums; [num_heads]."""
    truth = truth / truth.sum(dim=-1, keepdim=True)
    scores = scores / scores.sum(dim=-1, keepdim=True)
    return (truth * (truth.log() - scores.log())).sum(dim=-1)


def make_adapter(name):
    model = common.load_model(common.MODELS / name)
    facts = TINY[name]
    generator = torch.Generator().manual_seed(facts["seed"])
    rank = facts["rank"]

    def noise(*shape):
        return torch.randn(shape, generator=generator)

    tensors = {"lookahead_tokens": 0.3 * noise(facts["tokens"], model.config.hidden_size)}
    layers = len(model.model.layers)
    for index, block in enumerate(model.model.layers):
        for kind, path in LINEARS.items():
            if index == layers - 1 and kind not in "qk":
                continue
            linear = block.get_submodule(path)
            at = f"layers.{index}.{path}"
            tensors[f"{at}.lora_A"] = noise(rank, linear.in_features) * linear.in_features ** -0.5
            tensors[f"{at}.lora_B"] = 0.1 * noise(linear.out_features, rank)
    info = {"num_lookahead_tokens": str(facts["tokens"]), "lora_rank": str(rank),
            "lora_alpha": str(facts["alpha"]), "base": name, "note": "random, for tests"}
    path = common.out_path(common.MODELS / f"{name}.adapter.safetensors")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(path), metadata=info)
    path.chmod(0o644)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


def selection(scores, num_kv_heads, budget):
    choice = eviction.Choice()
    for mass in scores:
        pooled = eviction.max_pool(eviction.group_mean(mass, num_kv_heads))
        choice.add_layer(pooled, [budget] * num_kv_heads, 0)
    return choice


def make_golden(name):
    facts = TINY[name]
    path = common.MODELS / f"{name}.adapter.safetensors"
    model = common.load_model(common.MODELS / name)
    ids = common.tiny_prompt(name, facts["prompt"], model.config.vocab_size)
    _, reply, _ = common.greedy(model, ids, facts["reply"])
    tensors = {"prompt_ids": torch.tensor(ids, dtype=torch.int32),
               "reply_ids": torch.tensor(reply, dtype=torch.int32)}
    masses, logits = lookahead_scores(model, ids, Adapter.read(path, torch.float32))
    tensors["scores"], tensors["last_logits"] = torch.stack(masses), logits
    for budget in (32, 64):
        made = selection(masses, model.config.num_key_value_heads, budget)
        tensors.update(eviction.tensors_of(f"n{budget}", made))

    model = common.load_model(common.MODELS / name, dtype=torch.float64)
    adapter = Adapter.read(path, torch.float64)
    truth, _ = attention_mass(model, embed(model, ids + reply), NONE, len(ids))
    with torch.enable_grad():
        for tensor in adapter.tensors.values():
            tensor.requires_grad_(True)
        scores, _ = lookahead_scores(model, ids, adapter)
        parts = torch.stack([divergence(t, s) for t, s in zip(truth, scores)])
        loss = parts.mean()
        loss.backward()
    tensors["loss"] = loss.detach()[None]
    tensors["divergence"] = parts.detach()
    tensors["truth"] = truth[len(truth) // 2]
    for key, tensor in adapter.tensors.items():
        tensors[f"grad.{key}"] = tensor.grad
    common.save_golden(common.HERE / "lookahead_kv" / f"{name}.safetensors", tensors, __file__,
                       adapter=path.name, weights_sha256=common.model_hash(common.MODELS / name))
    drift = (torch.stack([s.detach().float() for s in scores]) - tensors["scores"]).abs().max()
    print(f"  loss {float(loss):.6f}; float32 scores within {float(drift):.1e} of float64")


def compare(args):
    model = common.load_model(args.model)
    adapter = Adapter.read(args.adapter, torch.float32)
    expected, _ = common.read_tensors(args.scores)
    for case in sorted({key.split(".")[0] for key in expected}):
        ids = expected[f"{case}.prompt_ids"].tolist()
        masses, logits = lookahead_scores(model, ids, adapter)
        scores, theirs = torch.stack(masses), expected[f"{case}.scores"]
        kv_heads = model.config.num_key_value_heads
        mine = selection(masses, kv_heads, 64).kept
        other = selection(theirs, kv_heads, 64).kept
        pairs = [(set(a), set(b)) for x, y in zip(mine, other) for a, b in zip(x, y)]
        top_ids = expected[f"{case}.top_ids"].long()
        print(f"case {case}, {len(ids)} tokens: largest score error "
              f"{float((scores - theirs).abs().max()):.2e} (largest score "
              f"{float(theirs.max()):.3f}); best 64 equal in "
              f"{sum(a == b for a, b in pairs)} of {len(pairs)} layer-heads, "
              f"{sum(len(a - b) for a, b in pairs)} entries differ; largest logit error "
              f"{float((logits[top_ids] - expected[f'{case}.top_logits']).abs().max()):.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("adapters", "golden", "compare"))
    parser.add_argument("--model", type=pathlib.Path, default=common.default_smollm2_dir())
    parser.add_argument("--adapter", type=pathlib.Path)
    parser.add_argument("--scores", type=pathlib.Path)
    args = parser.parse_args()
    common.set_up()
    if args.what == "compare":
        if not args.adapter or not args.scores:
            common.fail("compare needs --adapter and --scores")
        compare(args)
        return
    for name in TINY:
        make_adapter(name) if args.what == "adapters" else make_golden(name)


if __name__ == "__main__":
    main()
