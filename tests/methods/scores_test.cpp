// Selections against straightforward loops in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "harness/base/status.h"
#include "methods/attention_mass_at.h"
#include "methods/registry.h"
#include "tests/methods/synthetic_prompt.h"

namespace kvlab {
namespace {

using Row = std::vector<double>;

double at3(const at::Tensor& tensor, int64_t a, int64_t b, int64_t c) {
  return tensor[a][b][c].item<double>();
}

// Weights of one query over the prompt's keys up to `visible`, then `extra` own keys.
Row softmax_row(const at::Tensor& queries, int64_t head, int64_t row, const at::Tensor& keys,
                int64_t kv_head, int64_t visible, const at::Tensor& extra, int64_t num_extra) {
  const int64_t dim = keys.size(2);
  Row logits;
  const auto dot = [&](const at::Tensor& side, int64_t key) {
    double sum = 0;
    for (int64_t d = 0; d < dim; ++d) {
      sum += at3(queries, head, row, d) * at3(side, kv_head, key, d);
    }
    logits.push_back(sum / std::sqrt(static_cast<double>(dim)));
  };
  for (int64_t key = 0; key < visible; ++key) {
    dot(keys, key);
  }
  for (int64_t key = 0; key < num_extra; ++key) {
    dot(extra, key);
  }
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& logit : logits) {
    logit = std::exp(logit - top);
    sum += logit;
  }
  Row weights(keys.size(1), 0.0);
  for (int64_t key = 0; key < visible; ++key) {
    weights[key] = logits[key] / sum;
  }
  return weights;
}

Row max_pool(const Row& row, int64_t kernel) {
  Row out(row.size());
  for (int64_t i = 0; i < static_cast<int64_t>(row.size()); ++i) {
    out[i] = row[i];
    for (int64_t j = std::max<int64_t>(0, i - kernel / 2);
         j <= std::min<int64_t>(static_cast<int64_t>(row.size()) - 1, i + kernel / 2); ++j) {
      out[i] = std::max(out[i], row[j]);
    }
  }
  return out;
}

Row average_pool(const Row& row, int64_t kernel) {
  Row out(row.size(), 0.0);
  for (int64_t i = 0; i < static_cast<int64_t>(row.size()); ++i) {
    for (int64_t j = std::max<int64_t>(0, i - kernel / 2);
         j <= std::min<int64_t>(static_cast<int64_t>(row.size()) - 1, i + kernel / 2); ++j) {
      out[i] += row[j] / static_cast<double>(kernel);
    }
  }
  return out;
}

std::vector<int32_t> best(const Row& scores, int64_t count) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

class Scores : public ::testing::Test {
 protected:
  std::vector<std::vector<std::vector<int32_t>>> select(const std::string& method,
                                                        const Json& params, int64_t budget) {
    const auto policy = make_policy(method, params);
    EXPECT_TRUE(policy.ok()) << policy.status();
    const auto result = (*policy)->select({.prompt = prompt_.get(),
                                           .config = &config_,
                                           .budget = {budget},
                                           .draft = &draft_,
                                           .model = nullptr});
    EXPECT_TRUE(result.ok()) << result.status();
    return result->selection.kept;
  }

  // Weights of each row for a query head: the tail's, then the draft's.
  std::vector<Row> weights(int64_t layer, int64_t head, int64_t tail, bool with_draft,
                           bool own_keys) {
    const LayerState& state = prompt_->layers[layer];
    const int64_t kv_head = head / (shape_.num_heads / shape_.num_kv_heads);
    std::vector<Row> rows;
    for (int64_t row = 0; row < tail; ++row) {
      rows.push_back(softmax_row(state.tail_queries, head, state.tail_queries.size(1) - tail + row,
                                 state.keys, kv_head, shape_.prompt_len - tail + row + 1, {}, 0));
    }
    if (with_draft) {
      const at::Tensor& queries = draft_.queries.queries[layer];
      for (int64_t row = 0; row < queries.size(1); ++row) {
        rows.push_back(softmax_row(queries, head, row, state.keys, kv_head, shape_.prompt_len,
                                   draft_.queries.keys[layer], own_keys ? row + 1 : 0));
      }
    }
    return rows;
  }

  // Scores of a KV head: rows reduced, then heads, then pooled over what the window leaves.
  Row kv_scores(int64_t layer, int64_t kv_head, int64_t tail, bool with_draft, bool own_keys,
                bool maximum, int64_t window) {
    const int64_t group = shape_.num_heads / shape_.num_kv_heads;
    Row scores(shape_.prompt_len - window, 0.0);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const auto rows = weights(layer, head, tail, with_draft, own_keys);
      for (const Row& row : rows) {
        for (size_t i = 0; i < scores.size(); ++i) {
          scores[i] = maximum ? std::max(scores[i], row[i])
                              : scores[i] + row[i] / static_cast<double>(rows.size() * group);
        }
      }
    }
    return scores;
  }

  std::vector<int32_t> with_window(std::vector<int32_t> kept, int64_t window) const {
    for (int64_t i = shape_.prompt_len - window; i < shape_.prompt_len; ++i) {
      kept.push_back(static_cast<int32_t>(i));
    }
    return kept;
  }

  void for_each_head(const std::function<void(int64_t, int64_t)>& check) const {
    for (int64_t layer = 0; layer < shape_.num_layers; ++layer) {
      for (int64_t kv_head = 0; kv_head < shape_.num_kv_heads; ++kv_head) {
        check(layer, kv_head);
      }
    }
  }

  SyntheticShape shape_{.num_layers = 2,
                        .num_heads = 6,
                        .num_kv_heads = 2,
                        .head_dim = 16,
                        .prompt_len = 91,
                        .tail_queries = 70,
                        .seed = 5,
                        .dtype = at::kFloat};
  ModelConfig config_ = synthetic_config(shape_);
  std::shared_ptr<PromptState> prompt_ = synthetic_prompt(shape_);
  Draft draft_ = synthetic_draft(shape_, 4);
};

TEST_F(Scores, SnapkvIsTheWindowsMeanAttentionMaxPooled) {
  const auto kept = select("snapkv", {{"window", 12}}, 30);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    const Row scores = max_pool(kv_scores(layer, kv_head, 12, false, false, false, 12), 7);
    EXPECT_EQ(kept[layer][kv_head], with_window(best(scores, 18), 12));
  });
}

TEST_F(Scores, SnapkvWithAverageBeforeTheGroupMean) {
  // Averages commute: pooling before or after the mean over the group is the same.
  const auto kept = select("snapkv", {{"variant", "kvpress"}, {"window", 12}}, 30);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    const Row scores = average_pool(kv_scores(layer, kv_head, 12, false, false, false, 12), 5);
    EXPECT_EQ(kept[layer][kv_head], with_window(best(scores, 18), 12));
  });
}

TEST_F(Scores, PoolOrderMattersForTheMaximum) {
  const auto kept = select("snapkv", {{"window", 12}, {"pool_order", "before_group"}}, 30);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    const int64_t group = shape_.num_heads / shape_.num_kv_heads;
    Row scores(shape_.prompt_len - 12, 0.0);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      Row mean(scores.size(), 0.0);
      for (const Row& row : weights(layer, head, 12, false, false)) {
        for (size_t i = 0; i < mean.size(); ++i) {
          mean[i] += row[i] / 12;
        }
      }
      const Row pooled = max_pool(mean, 7);
      for (size_t i = 0; i < mean.size(); ++i) {
        scores[i] += pooled[i] / static_cast<double>(group);
      }
    }
    EXPECT_EQ(kept[layer][kv_head], with_window(best(scores, 18), 12));
  });
}

TEST_F(Scores, TovaIsTheLastRowOverAllHeads) {
  const auto kept = select("tova", {}, 20);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    Row scores(shape_.prompt_len, 0.0);
    for (int64_t head = 0; head < shape_.num_heads; ++head) {
      const Row row = weights(layer, head, 1, false, false).front();
      for (size_t i = 0; i < row.size(); ++i) {
        scores[i] += row[i] / static_cast<double>(shape_.num_heads);
      }
    }
    EXPECT_EQ(kept[layer][kv_head], best(scores, 20));
  });
}

TEST_F(Scores, StreamingKeepsSinksAndTheMostRecent) {
  const auto kept = select("streaming_llm", {}, 10);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    EXPECT_THAT(kept[layer][kv_head], ::testing::ElementsAre(0, 1, 2, 3, 85, 86, 87, 88, 89, 90));
  });
}

TEST_F(Scores, H2oAddsTheRecordedSumsOfItsGroup) {
  const auto kept = select("h2o", {}, 30);
  const auto averaged = select("h2o", {{"variant", "kvpress"}}, 30);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    const at::Tensor& sums = prompt_->layers[layer].attention_sums;
    Row scores(shape_.prompt_len, 0.0);
    Row means(shape_.prompt_len, 0.0);
    for (int64_t head = kv_head * 3; head < kv_head * 3 + 3; ++head) {
      for (int64_t i = 0; i < shape_.prompt_len; ++i) {
        scores[i] += sums[head][i].item<double>();
        means[i] += sums[head][i].item<double>() / static_cast<double>(shape_.prompt_len - i);
      }
    }
    Row heavy(scores.begin(), scores.end() - 15);
    EXPECT_EQ(kept[layer][kv_head], with_window(best(heavy, 15), 15));
    EXPECT_EQ(averaged[layer][kv_head], best(means, 30));
  });
}

TEST_F(Scores, KeyNormKeepsTheShortestKeys) {
  const auto kept = select("knorm", {}, 25);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    Row scores(shape_.prompt_len, 0.0);
    for (int64_t i = 0; i < shape_.prompt_len; ++i) {
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        scores[i] -= std::pow(at3(prompt_->layers[layer].keys, kv_head, i, d), 2);
      }
    }
    EXPECT_EQ(kept[layer][kv_head], best(scores, 25));
  });
}

TEST_F(Scores, KeyDiffKeepsTheKeysLeastLikeTheMean) {
  const auto kept = select("keydiff", {}, 25);
  for_each_head([&](int64_t layer, int64_t kv_head) {
    const at::Tensor& keys = prompt_->layers[layer].keys;
    std::vector<Row> unit(shape_.prompt_len, Row(shape_.head_dim));
    Row anchor(shape_.head_dim, 0.0);
    for (int64_t i = 0; i < shape_.prompt_len; ++i) {
      double square = 0;
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        square += std::pow(at3(keys, kv_head, i, d), 2);
      }
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        unit[i][d] = at3(keys, kv_head, i, d) / std::sqrt(square);
        anchor[d] += unit[i][d];
      }
    }
    Row scores(shape_.prompt_len, 0.0);
    for (int64_t i = 0; i < shape_.prompt_len; ++i) {
      for (int64_t d = 0; d < shape_.head_dim; ++d) {
        scores[i] -= unit[i][d] * anchor[d];
      }
    }
    EXPECT_EQ(kept[layer][kv_head], best(scores, 25));
  });
}

TEST(AttentionMassOnTensors, OperatorsAndKernelsAgree) {
  SyntheticShape shape{.num_layers = 1,
                       .num_heads = 8,
                       .num_kv_heads = 2,
                       .head_dim = 32,
                       .prompt_len = 77,
                       .tail_queries = 9,
                       .seed = 3,
                       .dtype = at::kFloat};
  const auto prompt = synthetic_prompt(shape);
  const Draft draft = synthetic_draft(shape, 6);
  const SelectionInput input{
      .prompt = prompt.get(), .config = nullptr, .budget = {10}, .draft = &draft, .model = nullptr};
  for (const bool own_keys : {false, true}) {
    for (const bool official : {false, true}) {
      const QueryRows rows =
          tail_and_following_rows(input, 9, &draft.queries, own_keys, official)(0);
      for (const auto reduction : {RowReduction::kSum, RowReduction::kMean, RowReduction::kMax}) {
        const at::Tensor fast = attention_mass(rows, prompt->layers[0].keys, reduction);
        const at::Tensor plain =
            attention_mass_by_operators(rows, prompt->layers[0].keys, reduction);
        EXPECT_LT((fast - plain).abs().max().item<double>(), 1e-6);
      }
    }
  }
}

TEST(Pooling, OneRowThatStandsForSeveralIsPooledAsSeveral) {
  const at::Tensor row = at::arange(40, at::kFloat).remainder(7);
  const at::Tensor expanded = row.expand({6, 40});
  const at::Tensor copied = expanded.contiguous();
  for (const at::Tensor& part : {expanded, expanded.narrow(1, 0, 33)}) {
    const at::Tensor same = copied.narrow(1, 0, part.size(1)).contiguous();
    for (const PoolKind kind : {PoolKind::kNone, PoolKind::kMax, PoolKind::kAverage}) {
      EXPECT_TRUE(pool_scores_at(part, kind, 5).equal(pool_scores_at(same, kind, 5)));
    }
    EXPECT_TRUE(reduce_group_at(part, 2, GroupReduction::kMean)
                    .equal(reduce_group_at(same, 2, GroupReduction::kMean)));
  }
}

}  // namespace
}  // namespace kvlab
