// Scores that need nothing but the keys.
#include "methods/scorers.h"

namespace kvlab {
namespace {

class KeyNormScorer final : public Scorer {
 public:
  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    return LayerScores([prompt = input.prompt](int64_t layer) -> absl::StatusOr<at::Tensor> {
      return at::linalg_vector_norm(prompt->layers[layer].keys.to(at::kFloat), 2, {-1}).neg();
    });
  }
};

class KeyDiffScorer final : public Scorer {
 public:
  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    return LayerScores([prompt = input.prompt](int64_t layer) -> absl::StatusOr<at::Tensor> {
      const at::Tensor keys = prompt->layers[layer].keys.to(at::kFloat);
      const at::Tensor lengths =
          at::linalg_vector_norm(keys, 2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
      const at::Tensor directions = keys / lengths;
      const at::Tensor anchor = directions.mean(1, /*keepdim=*/true);
      const at::Tensor anchor_length =
          at::linalg_vector_norm(anchor, 2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
      return at::matmul(directions, (anchor / anchor_length).transpose(1, 2)).squeeze(-1).neg();
    });
  }
};

}  // namespace

std::unique_ptr<Scorer> make_key_norm_scorer() { return std::make_unique<KeyNormScorer>(); }

std::unique_ptr<Scorer> make_key_diff_scorer() { return std::make_unique<KeyDiffScorer>(); }

}  // namespace kvlab
