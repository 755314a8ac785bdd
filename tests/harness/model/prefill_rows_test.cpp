// One pass over blocks of rows against its steps called one after the other: the same bits.
#include "harness/model/prefill_rows.h"

#include <vector>

#include "harness/model/row_kernels.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

struct Sizes {
  int64_t rows = 0;
  int64_t hidden = 0;
  int64_t inner = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;

  int64_t q() const { return num_heads * head_dim; }
  int64_t kv() const { return num_kv_heads * head_dim; }
  int64_t qkv() const { return q() + 2 * kv(); }
};

PackedLinear make_linear(ElementType type, int64_t out, int64_t in, bool bias,
                         std::mt19937_64& random) {
  const Values weights = Values::random(type, out * in, random, 0.1F);
  const Values biases = Values::random(type, out, random);
  return PackedLinear::pack(type, weights.data(), out, in, in, bias ? biases.data() : nullptr);
}

LowRankUpdate make_update(int64_t out, int64_t in, std::mt19937_64& random) {
  constexpr int64_t kRank = 3;
  const Values a = Values::random(ElementType::kFloat32, kRank * in, random, 0.1F);
  const Values b = Values::random(ElementType::kFloat32, out * kRank, random);
  return LowRankUpdate::pack(static_cast<const float*>(a.data()),
                             static_cast<const float*>(b.data()), kRank, out, in, 0.5F);
}

// One layer's weights and a chunk of rows.
struct Layer {
  Layer(ElementType element, const Sizes& shape, std::mt19937_64& random)
      : type(element),
        sizes(shape),
        o(make_linear(type, sizes.hidden, sizes.q(), false, random)),
        gate_up(make_linear(type, 2 * sizes.inner, sizes.hidden, false, random)),
        down(make_linear(type, sizes.hidden, sizes.inner, false, random)),
        qkv(make_linear(type, sizes.qkv(), sizes.hidden, pick(random, 0, 1) == 1, random)),
        mlp_norm(Values::random(type, sizes.hidden, random)),
        norm(Values::random(type, sizes.hidden, random)),
        head_norm(Values::random(type, sizes.head_dim, random)),
        attended(Values::random(type, sizes.rows * sizes.q(), random)),
        cos(Values::random(ElementType::kFloat32, sizes.rows * sizes.head_dim / 2, random)),
        sin(Values::random(ElementType::kFloat32, sizes.rows * sizes.head_dim / 2, random)),
        hidden(Values::random(type, sizes.rows * sizes.hidden, random)),
        q_update(make_update(sizes.q(), sizes.hidden, random)),
        k_update(make_update(sizes.kv(), sizes.hidden, random)),
        v_update(make_update(sizes.kv(), sizes.hidden, random)),
        o_update(make_update(sizes.hidden, sizes.q(), random)),
        gate_update(make_update(sizes.inner, sizes.hidden, random)),
        up_update(make_update(sizes.inner, sizes.hidden, random)),
        down_update(make_update(sizes.hidden, sizes.inner, random)) {}

  ElementType type;
  Sizes sizes;
  PackedLinear o, gate_up, down, qkv;
  Values mlp_norm, norm, head_norm, attended, cos, sin;
  Values hidden;
  LowRankUpdate q_update, k_update, v_update, o_update, gate_update, up_update, down_update;
};

// What a pass leaves.
struct Result {
  explicit Result(const Layer& layer)
      : hidden(layer.hidden),
        normed(layer.type, layer.sizes.rows * layer.sizes.hidden),
        queries(layer.type, layer.sizes.rows * layer.sizes.q()),
        keys(layer.type, layer.sizes.rows * layer.sizes.kv()),
        values(layer.type, layer.sizes.rows * layer.sizes.kv()) {}
  bool operator==(const Result&) const = default;

  Values hidden, normed, queries, keys, values;
};

struct Wanted {
  bool attended = true;
  bool qkv = true;
  bool rotate_queries = true;
  bool head_norms = false;
  bool updates = false;
  int64_t updates_from = 0;
};

PrefillRowsArgs arguments(const Layer& layer, const Wanted& wanted, Result& result) {
  const Sizes& sizes = layer.sizes;
  PrefillRowsArgs args;
  args.type = layer.type;
  args.rows = sizes.rows;
  args.eps = 1e-5F;
  args.hidden = result.hidden.data();
  if (wanted.attended) {
    args.attended = layer.attended.data();
    args.o = &layer.o;
    args.mlp_norm = layer.mlp_norm.data();
    args.gate_up = &layer.gate_up;
    args.down = &layer.down;
  }
  args.norm = layer.norm.data();
  args.normed = result.normed.data();
  if (wanted.qkv) {
    args.qkv = &layer.qkv;
    args.num_heads = sizes.num_heads;
    args.num_kv_heads = sizes.num_kv_heads;
    args.head_dim = sizes.head_dim;
    args.q_norm = args.k_norm = wanted.head_norms ? layer.head_norm.data() : nullptr;
    args.cos = static_cast<const float*>(layer.cos.data());
    args.sin = static_cast<const float*>(layer.sin.data());
    args.rotate_queries = wanted.rotate_queries;
    // Queries lie row by row, keys and values head by head.
    args.queries = {result.queries.data(), sizes.head_dim, sizes.q()};
    args.keys = {result.keys.data(), sizes.rows * sizes.head_dim, sizes.head_dim};
    args.values = {result.values.data(), sizes.rows * sizes.head_dim, sizes.head_dim};
  }
  if (wanted.updates) {
    args.updates = {&layer.q_update,    &layer.k_update,  &layer.v_update,   &layer.o_update,
                    &layer.gate_update, &layer.up_update, &layer.down_update};
    args.updates_from = wanted.updates_from;
  }
  return args;
}

// The steps over all rows, one after the other.
void step_by_step(const PrefillRowsArgs& args, const Layer& layer) {
  const Sizes& sizes = layer.sizes;
  Values added(args.type, args.rows * sizes.hidden);
  Values normed(args.type, args.rows * sizes.hidden);
  const auto forward = [&](const PackedLinear& linear, const void* x, Values& y) {
    linear.forward(x, args.rows, linear.in_features(), y.data(), linear.out_features(), args.type);
  };
  const auto norm = [&](const void* delta, const void* weight) {
    rms_norm_rows(
        {args.type, args.rows, sizes.hidden, args.eps, args.hidden, delta, weight, normed.data()});
  };
  const auto update = [&](const LowRankUpdate* low_rank, const void* x, void* y, int64_t stride) {
    const int64_t first = args.updates_from;
    if (low_rank != nullptr && first < args.rows) {
      const int64_t element = element_size(args.type);
      const int64_t in_features = low_rank->in_features();
      low_rank->add_to(args.type, static_cast<const char*>(x) + first * in_features * element,
                       args.rows - first, in_features,
                       static_cast<char*>(y) + first * stride * element, stride);
    }
  };
  if (args.attended != nullptr) {
    forward(*args.o, args.attended, added);
    update(args.updates.o, args.attended, added.data(), sizes.hidden);
    norm(added.data(), args.mlp_norm);
    Values gate_up(args.type, args.rows * 2 * sizes.inner);
    Values inner(args.type, args.rows * sizes.inner);
    forward(*args.gate_up, normed.data(), gate_up);
    update(args.updates.gate, normed.data(), gate_up.data(), 2 * sizes.inner);
    update(args.updates.up, normed.data(), gate_up.from(sizes.inner), 2 * sizes.inner);
    silu_mul_rows({args.type, args.rows, sizes.inner, gate_up.data(), gate_up.from(sizes.inner),
                   2 * sizes.inner, inner.data()});
    forward(*args.down, inner.data(), added);
    update(args.updates.down, inner.data(), added.data(), sizes.hidden);
  }
  norm(args.attended != nullptr ? added.data() : nullptr, args.norm);
  std::memcpy(args.normed, normed.data(), normed.size() * element_size(args.type));
  if (args.qkv == nullptr) {
    return;
  }
  Values qkv(args.type, args.rows * sizes.qkv());
  forward(*args.qkv, normed.data(), qkv);
  update(args.updates.q, normed.data(), qkv.data(), sizes.qkv());
  update(args.updates.k, normed.data(), qkv.from(sizes.q()), sizes.qkv());
  update(args.updates.v, normed.data(), qkv.from(sizes.q() + sizes.kv()), sizes.qkv());
  const auto part = [&](int64_t begin, int64_t heads, const MutableHeadRows& out, bool angles,
                        const void* head_norm) {
    rotate_rows({args.type, args.rows, heads, sizes.head_dim,
                 HeadRows{qkv.from(begin), sizes.head_dim, sizes.qkv()}, out,
                 angles ? args.cos : nullptr, angles ? args.sin : nullptr, head_norm, args.eps});
  };
  part(0, sizes.num_heads, args.queries, args.rotate_queries, args.q_norm);
  part(sizes.q(), sizes.num_kv_heads, args.keys, true, args.k_norm);
  part(sizes.q() + sizes.kv(), sizes.num_kv_heads, args.values, false, nullptr);
}

class PrefillRows : public testing::TestWithParam<CpuLevel> {};

TEST_P(PrefillRows, EqualsItsStepsBitForBit) {
  const LevelGuard guard(GetParam());
  std::mt19937_64 random(7);
  for (int round = 0; round < 24; ++round) {
    const auto type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
    Sizes sizes;
    sizes.rows = pick_of<int64_t>(random, {1, 2, 47, 96, 97, 200, 333});
    sizes.num_kv_heads = pick(random, 1, 2);
    sizes.num_heads = sizes.num_kv_heads * pick(random, 1, 3);
    sizes.head_dim = pick_of<int64_t>(random, {16, 32});
    sizes.hidden = pick_of<int64_t>(random, {32, 70, 96});
    sizes.inner = pick_of<int64_t>(random, {48, 80});
    const Layer layer(type, sizes, random);
    for (const Wanted wanted :
         {Wanted{}, Wanted{.attended = false}, Wanted{.qkv = false},
          Wanted{.rotate_queries = false}, Wanted{.head_norms = true}, Wanted{.updates = true},
          Wanted{.updates = true, .updates_from = pick(random, 0, sizes.rows)}}) {
      Result expected(layer);
      set_kernel_threads(1);
      step_by_step(arguments(layer, wanted, expected), layer);
      Result result(layer);
      set_kernel_threads(static_cast<int>(pick(random, 1, 4)));
      prefill_rows(arguments(layer, wanted, result));
      EXPECT_TRUE(result == expected) << sizes.rows << " rows, " << kernel_threads() << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PrefillRows, testing::ValuesIn(fast_levels()), level_test_name);

}  // namespace
}  // namespace kvlab
