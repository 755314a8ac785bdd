// Scores that look at no tensor: where an entry stands, or chance.
#include "methods/scorers.h"

namespace kvlab {
namespace {

class RecencyScorer final : public Scorer {
 public:
  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    return LayerScores([prompt = input.prompt](int64_t layer) -> absl::StatusOr<at::Tensor> {
      return at::arange(prompt->prompt_len(), at::kFloat)
          .expand({prompt->layers[layer].keys.size(0), prompt->prompt_len()});
    });
  }
};

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the input reaches every bit
// of the output.
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

class RandomScorer final : public Scorer {
 public:
  explicit RandomScorer(uint64_t seed) : seed_(seed) {}

  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    uint64_t key = mixed(seed_);
    for (const int32_t token : input.prompt->token_ids) {
      key = mixed(key ^ static_cast<uint64_t>(static_cast<uint32_t>(token)));
    }
    return LayerScores([prompt = input.prompt, key](int64_t layer) -> absl::StatusOr<at::Tensor> {
      const int64_t num_kv_heads = prompt->layers[layer].keys.size(0);
      const int64_t prompt_len = prompt->prompt_len();
      at::Tensor scores = at::empty({num_kv_heads, prompt_len}, at::kFloat);
      auto* const out = scores.mutable_data_ptr<float>();
      for (int64_t head = 0; head < num_kv_heads; ++head) {
        const uint64_t head_key =
            mixed(mixed(key ^ static_cast<uint64_t>(layer)) ^ static_cast<uint64_t>(head));
        for (int64_t position = 0; position < prompt_len; ++position) {
          // 24 bits: every value is a float in [0, 1).
          out[head * prompt_len + position] =
              static_cast<float>(mixed(head_key + static_cast<uint64_t>(position)) >> 40) *
              0x1p-24F;
        }
      }
      return scores;
    });
  }

 private:
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Scorer> make_recency_scorer() { return std::make_unique<RecencyScorer>(); }

std::unique_ptr<Scorer> make_random_scorer(uint64_t seed) {
  return std::make_unique<RandomScorer>(seed);
}

}  // namespace kvlab
