// What every cache and every batch must keep: independence of arms, ragged caches, untouched
// prompts.
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "harness/generation/greedy.h"
#include "harness/model/layer_ops.h"
#include "harness/model/threads.h"
#include "harness/model/transformer_lm.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

struct Case {
  const char* model;
  at::ScalarType dtype;
};

class Decoding : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    set_compute_threads(1);
    auto model = TransformerLm::load(golden_dir() / "models" / GetParam().model,
                                     {.dtype = GetParam().dtype});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    prompt_ = prefill(90, {.tail_queries = 90, .attention_sums = true});
  }

  std::vector<int32_t> random_ids(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> ids(static_cast<size_t>(count));
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random() % static_cast<uint32_t>(model_->config().vocab_size));
    }
    return ids;
  }

  std::shared_ptr<PromptState> prefill(int64_t count, const PrefillNeeds& needs,
                                       int64_t chunk_size = 2048) {
    auto state = model_->prefill(random_ids(count, 5), {.chunk_size = chunk_size, .needs = needs});
    EXPECT_TRUE(state.ok()) << state.status();
    return *std::move(state);
  }

  // Another number of entries for every head, as AdaKV leaves them.
  Selection ragged_selection(uint32_t seed) {
    std::mt19937 random(seed);
    Selection selection;
    selection.prompt_len = prompt_->prompt_len();
    for (int64_t layer = 0; layer < model_->config().num_layers; ++layer) {
      auto& heads = selection.kept.emplace_back();
      for (int64_t head = 0; head < model_->config().num_kv_heads; ++head) {
        auto& kept = heads.emplace_back();
        const auto share = static_cast<uint32_t>(1 + random() % 10);
        for (int32_t position = 0; position < selection.prompt_len; ++position) {
          if (random() % 10 < share) {
            kept.push_back(position);
          }
        }
      }
    }
    return selection;
  }

  // Arms of all kinds: full, ragged, one without any prompt entry.
  ArmRequest arm(uint32_t kind) {
    Selection none = ragged_selection(1);
    for (auto& layer : none.kept) {
      for (auto& head : layer) {
        head.clear();
      }
    }
    KvCache cache = kind == 0   ? KvCache::full(prompt_, 40)
                    : kind == 1 ? KvCache::compact(*prompt_, none, 40)
                                : KvCache::compact(*prompt_, ragged_selection(kind), 40);
    return {.cache = std::move(cache),
            .first_logits = prompt_->last_logits,
            .max_new_tokens = 12 + kind % 5,
            .min_new_tokens = 0,
            .stop_ids = {}};
  }

  std::shared_ptr<TransformerLm> model_;
  std::shared_ptr<PromptState> prompt_;
};

TEST_P(Decoding, AnArmsLogitsDoNotDependOnTheOthersBitForBit) {
  constexpr uint32_t kArms = 21;
  std::vector<KvCache> alone;
  std::vector<at::Tensor> expected(kArms);
  for (uint32_t i = 0; i < kArms; ++i) {
    KvCache cache = arm(i).cache;
    for (int32_t step = 0; step < 3; ++step) {
      const std::vector<int32_t> id = {static_cast<int32_t>(i) + step};
      KvCache* pointer = &cache;
      const auto logits = model_->decode_step(id, {&pointer, 1}, {});
      ASSERT_TRUE(logits.ok()) << logits.status();
      expected[i] = logits->select(0, 0).clone();
    }
  }
  std::mt19937 random(3);
  for (const uint32_t size : {2U, 3U, 5U, 8U, 16U, 17U, kArms}) {
    std::vector<uint32_t> order(kArms);
    for (uint32_t i = 0; i < kArms; ++i) {
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    order.resize(size);
    std::vector<KvCache> caches;
    std::vector<KvCache*> pointers;
    for (const uint32_t kind : order) {
      caches.push_back(arm(kind).cache);
    }
    for (KvCache& cache : caches) {
      pointers.push_back(&cache);
    }
    at::Tensor logits;
    for (int32_t step = 0; step < 3; ++step) {
      std::vector<int32_t> ids;
      for (const uint32_t kind : order) {
        ids.push_back(static_cast<int32_t>(kind) + step);
      }
      const auto result = model_->decode_step(ids, pointers, {});
      ASSERT_TRUE(result.ok()) << result.status();
      logits = *result;
    }
    for (uint32_t i = 0; i < size; ++i) {
      EXPECT_TRUE(at::equal(logits[i], expected[order[i]])) << "arm " << order[i] << " of " << size;
    }
  }
}

TEST_P(Decoding, RepliesDoNotDependOnTheOtherArms) {
  std::vector<ArmRequest> requests;
  for (uint32_t i = 0; i < 9; ++i) {
    requests.push_back(arm(i));
  }
  const auto together = decode_greedy(*model_, std::move(requests));
  ASSERT_TRUE(together.ok()) << together.status();
  for (uint32_t i = 0; i < 9; ++i) {
    std::vector<ArmRequest> one;
    one.push_back(arm(i));
    const auto alone = decode_greedy(*model_, std::move(one));
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(alone->front().token_ids, (*together)[i].token_ids);
    EXPECT_EQ((*together)[i].token_ids.size(), 12 + i % 5);
    EXPECT_EQ((*together)[i].steps, 11 + i % 5);
  }
}

TEST_P(Decoding, KeepingEverythingIsTheFullCacheBitForBit) {
  Selection all;
  all.prompt_len = prompt_->prompt_len();
  std::vector<int32_t> positions(static_cast<size_t>(all.prompt_len));
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<int32_t>(i);
  }
  all.kept.assign(static_cast<size_t>(model_->config().num_layers),
                  std::vector<std::vector<int32_t>>(
                      static_cast<size_t>(model_->config().num_kv_heads), positions));
  KvCache full = KvCache::full(prompt_, 8);
  KvCache compact = KvCache::compact(*prompt_, all, 8);
  EXPECT_EQ(full.prompt_entries(), compact.prompt_entries());
  EXPECT_EQ(full.bytes(), compact.bytes());
  const auto ids = random_ids(8, 9);
  EXPECT_TRUE(
      at::equal(*model_->extend(ids, full, nullptr), *model_->extend(ids, compact, nullptr)));
}

TEST_P(Decoding, ExtendIsWhatSingleStepsAreBitForBit) {
  const auto ids = random_ids(20, 11);
  KvCache block = arm(7).cache;
  CapturedQueries block_queries;
  const auto block_logits = model_->extend(ids, block, &block_queries);
  ASSERT_TRUE(block_logits.ok()) << block_logits.status();
  KvCache steps = arm(7).cache;
  CapturedQueries step_queries;
  at::Tensor logits;
  for (const int32_t id : ids) {
    KvCache* cache = &steps;
    CapturedQueries* captured = &step_queries;
    logits = *model_->decode_step({&id, 1}, {&cache, 1}, {&captured, 1});
  }
  EXPECT_TRUE(at::equal(*block_logits, logits[0]));
  EXPECT_EQ(block.next_position(), steps.next_position());
  for (size_t layer = 0; layer < block_queries.queries.size(); ++layer) {
    EXPECT_TRUE(at::equal(block_queries.queries[layer], step_queries.queries[layer]));
    EXPECT_TRUE(at::equal(block_queries.keys[layer], step_queries.keys[layer]));
    EXPECT_EQ(block_queries.queries[layer].size(1), 20);
  }
}

// A dense run where entries are masked away, written independently: float32 matrices in double.
TEST_P(Decoding, ARaggedCacheGivesWhatADenseRunWithAMaskGives) {
  const Selection selection = ragged_selection(6);
  KvCache cache = KvCache::compact(*prompt_, selection, 4);
  int64_t entries = 0;
  for (const auto& layer : selection.kept) {
    for (const auto& head : layer) {
      entries += static_cast<int64_t>(head.size());
    }
  }
  EXPECT_EQ(cache.prompt_entries(), entries);
  const int32_t id = 17;
  const auto logits = model_->extend({&id, 1}, cache, nullptr);
  ASSERT_TRUE(logits.ok()) << logits.status();

  const c10::InferenceMode inference;
  const ModelConfig& config = model_->config();
  const int64_t position = prompt_->prompt_len();
  const auto angles = model_->rotary().tables(position, 1);
  const auto wide = [](const at::Tensor& x) {
    return x.defined() ? x.to(at::kDouble) : at::Tensor();
  };
  at::Tensor hidden = wide(model_->weights().embedding.narrow(0, id, 1));
  for (size_t l = 0; l < model_->weights().layers.size(); ++l) {
    const LayerWeights& w = model_->weights().layers[l];
    const at::Tensor normed = rms_norm(hidden, wide(w.attention_norm), config.rms_norm_eps);
    const auto project = [&](const at::Tensor& weight, const at::Tensor& bias, int64_t heads,
                             const at::Tensor& norm, bool turn) {
      const at::Tensor x = apply_linear(normed, wide(weight), wide(bias))
                               .view({1, heads, config.head_dim})
                               .transpose(0, 1);
      return turn ? rotate(x, angles.cos, angles.sin, wide(norm), config.rms_norm_eps) : x;
    };
    const at::Tensor q = project(w.q, w.q_bias, config.num_heads, w.q_norm, true);
    const at::Tensor k = at::cat({wide(prompt_->layers[l].keys),
                                  project(w.k, w.k_bias, config.num_kv_heads, w.k_norm, true)},
                                 1);
    const at::Tensor v = at::cat(
        {wide(prompt_->layers[l].values), project(w.v, w.v_bias, config.num_kv_heads, {}, false)},
        1);
    std::vector<at::Tensor> heads;
    for (int64_t h = 0; h < config.num_heads; ++h) {
      const int64_t kv = h / config.group_size();
      at::Tensor mask = at::full({position + 1}, -INFINITY, at::kDouble);
      mask[position] = 0;
      for (const int32_t kept : selection.kept[l][static_cast<size_t>(kv)]) {
        if (config.sliding_window == 0 || kept > position - config.sliding_window) {
          mask[kept] = 0;
        }
      }
      const at::Tensor scores =
          at::matmul(q[h], k[kv].transpose(0, 1)) * model_->attention_scale() + mask;
      heads.push_back(at::matmul(at::softmax(scores, -1), v[kv]));
    }
    hidden = hidden + apply_linear(at::cat(heads, 1), wide(w.o));
    const at::Tensor inner = rms_norm(hidden, wide(w.mlp_norm), config.rms_norm_eps);
    hidden = hidden + apply_linear(silu_mul(apply_linear(inner, wide(w.gate)),
                                            apply_linear(inner, wide(w.up))),
                                   wide(w.down));
  }
  const at::Tensor expected =
      apply_linear(rms_norm(hidden, wide(model_->weights().final_norm), config.rms_norm_eps),
                   wide(model_->weights().lm_head))[0];
  const double tolerance =
      GetParam().dtype == at::kFloat ? 1e-4 : 0.05 * expected.abs().max().item<double>();
  EXPECT_LT((logits->to(at::kDouble) - expected).abs().max().item<double>(), tolerance);
}

TEST_P(Decoding, CapturedQueriesHaveOneRowForEveryReplyToken) {
  ArmRequest request = arm(0);
  request.capture_queries = true;
  const int64_t wanted = request.max_new_tokens;
  std::vector<ArmRequest> requests;
  requests.push_back(std::move(request));
  requests.push_back(arm(3));
  const auto replies = decode_greedy(*model_, std::move(requests));
  ASSERT_TRUE(replies.ok()) << replies.status();
  const ArmReply& reply = replies->front();
  EXPECT_EQ(static_cast<int64_t>(reply.token_ids.size()), wanted);
  ASSERT_EQ(static_cast<int64_t>(reply.queries.queries.size()), model_->config().num_layers);
  EXPECT_EQ(reply.queries.queries[0].sizes().vec(),
            (std::vector<int64_t>{model_->config().num_heads, wanted, model_->config().head_dim}));
  EXPECT_TRUE((*replies)[1].queries.queries.empty());
  // The same queries as the reply read in one block.
  KvCache cache = KvCache::full(prompt_, 40);
  CapturedQueries again;
  ASSERT_TRUE(model_->extend(reply.token_ids, cache, &again).ok());
  EXPECT_TRUE(at::equal(again.queries.back(), reply.queries.queries.back()));
}

TEST_P(Decoding, StopIdsEndAReplyButNotBeforeTheMinimum) {
  std::vector<ArmRequest> free_run;
  free_run.push_back(arm(0));
  const auto free_reply = decode_greedy(*model_, std::move(free_run));
  const std::vector<int32_t>& ids = free_reply->front().token_ids;
  EXPECT_EQ(free_reply->front().stop_reason, StopReason::kMaxNewTokens);
  const auto first = std::find(ids.begin(), ids.end(), ids[5]) - ids.begin();
  ArmRequest request = arm(0);
  request.stop_ids = {ids[5]};
  std::vector<ArmRequest> requests;
  requests.push_back(std::move(request));
  const auto stopped = decode_greedy(*model_, std::move(requests));
  EXPECT_EQ(stopped->front().stop_reason, StopReason::kStopId);
  EXPECT_EQ(stopped->front().token_ids, std::vector<int32_t>(ids.begin(), ids.begin() + first + 1));
  ArmRequest at_least = arm(0);
  at_least.stop_ids = {ids[5]};
  at_least.min_new_tokens = first + 2;
  requests.clear();
  requests.push_back(std::move(at_least));
  const auto longer = decode_greedy(*model_, std::move(requests));
  EXPECT_GE(static_cast<int64_t>(longer->front().token_ids.size()), first + 2);
  EXPECT_NE(longer->front().token_ids[static_cast<size_t>(first)], ids[5]);
}

TEST_P(Decoding, AnInterruptedBatchSaysSo) {
  std::vector<ArmRequest> requests;
  requests.push_back(arm(0));
  int64_t calls = 0;
  const auto replies = decode_greedy(*model_, std::move(requests), {.on_step = [&](int64_t steps) {
    ++calls;
    return steps < 3;
  }});
  EXPECT_EQ(replies.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

TEST_P(Decoding, PrefillRecordsWhatIsAskedForWhateverTheChunks) {
  const PrefillNeeds needs = {
      .tail_queries = 33, .attention_sums = true, .query_moments = true, .moments_from = 4};
  const auto whole = prefill(90, needs);
  const double tolerance = GetParam().dtype == at::kFloat ? 1e-4 : 0.15;
  for (const int64_t chunk : {1, 7, 64}) {
    const auto state = prefill(90, needs, chunk);
    for (size_t l = 0; l < state->layers.size(); ++l) {
      const LayerState& a = state->layers[l];
      const LayerState& b = whole->layers[l];
      const auto near = [&](const at::Tensor& x, const at::Tensor& y) {
        const double scale = 1 + y.abs().max().item<double>();
        return (x.to(at::kDouble) - y.to(at::kDouble)).abs().max().item<double>() <
               tolerance * scale;
      };
      EXPECT_TRUE(near(a.keys, b.keys));
      EXPECT_TRUE(near(a.values, b.values));
      EXPECT_TRUE(near(a.tail_queries, b.tail_queries));
      EXPECT_TRUE(near(a.attention_sums, b.attention_sums));
      EXPECT_TRUE(near(a.query_mean, b.query_mean));
      EXPECT_TRUE(near(a.query_covariance, b.query_covariance));
    }
  }
}

TEST_P(Decoding, AttentionSumsAreTheColumnSumsOfTheSoftmax) {
  const ModelConfig& config = model_->config();
  const int64_t n = prompt_->prompt_len();
  for (const LayerState& layer : prompt_->layers) {
    const at::Tensor k = layer.keys.to(at::kDouble).repeat_interleave(config.group_size(), 0);
    at::Tensor scores = at::matmul(layer.tail_queries.to(at::kDouble), k.transpose(1, 2)) *
                        model_->attention_scale();
    at::Tensor visible = at::ones({n, n}, at::kBool).tril();
    if (config.sliding_window > 0) {
      visible =
          at::logical_and(visible, at::ones({n, n}, at::kBool).triu(1 - config.sliding_window));
    }
    const at::Tensor sums =
        at::softmax(scores.masked_fill(at::logical_not(visible), -INFINITY), -1).sum(1);
    EXPECT_LT((layer.attention_sums.to(at::kDouble) - sums).abs().max().item<double>(), 2e-2);
    EXPECT_NEAR(layer.attention_sums.sum().item<double>(),
                static_cast<double>(n * config.num_heads), 0.5);
  }
}

TEST_P(Decoding, QueryMomentsAreThoseOfTheQueriesBeforeRotation) {
  const auto state = prefill(60, {.tail_queries = 60, .query_moments = true, .moments_from = 4});
  const auto angles = model_->rotary().tables(0, 60);
  for (const LayerState& layer : state->layers) {
    // Turning back by the negative angle and undoing yarn's factor, which enters twice.
    const double factor = model_->rotary().attention_factor();
    const at::Tensor q =
        rotate(layer.tail_queries.to(at::kDouble), angles.cos, -angles.sin).narrow(1, 4, 56) /
        (factor * factor);
    const at::Tensor mean = q.mean(1);
    const at::Tensor centred = q - mean.unsqueeze(1);
    const at::Tensor covariance = at::matmul(centred.transpose(1, 2), centred) / 56.0;
    const double tolerance = GetParam().dtype == at::kFloat ? 1e-4 : 2e-2;
    const double scale = 1 + covariance.abs().max().item<double>();
    EXPECT_LT((layer.query_mean - mean).abs().max().item<double>(), tolerance * scale);
    EXPECT_LT((layer.query_covariance - covariance).abs().max().item<double>(), tolerance * scale);
  }
}

// What one method of a sweep needs must not change what the others see.
TEST_P(Decoding, WhatPrefillRecordsDoesNotChangeThePromptState) {
  const auto plain = prefill(90, {});
  for (const PrefillNeeds& needs :
       {PrefillNeeds{.tail_queries = 90}, PrefillNeeds{.attention_sums = true},
        PrefillNeeds{.query_moments = true},
        PrefillNeeds{.tail_queries = 90, .attention_sums = true, .query_moments = true}}) {
    for (const int64_t chunk_size : {2048, 32}) {
      const auto recorded = prefill(90, needs, chunk_size);
      const auto same_chunks = chunk_size == 2048 ? plain : prefill(90, {}, chunk_size);
      EXPECT_TRUE(recorded->last_logits.equal(same_chunks->last_logits));
      for (size_t layer = 0; layer < plain->layers.size(); ++layer) {
        EXPECT_TRUE(recorded->layers[layer].keys.equal(same_chunks->layers[layer].keys));
        EXPECT_TRUE(recorded->layers[layer].values.equal(same_chunks->layers[layer].values));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Decoding,
    testing::Values(Case{"tiny-llama-yarn", at::kFloat}, Case{"tiny-qwen2", at::kFloat},
                    Case{"tiny-qwen3", at::kFloat}, Case{"tiny-mistral-window", at::kFloat},
                    Case{"tiny-gqa", at::kFloat}, Case{"tiny-gqa", at::kBFloat16},
                    Case{"tiny-qwen3", at::kBFloat16}),
    [](const auto& param_info) {
      std::string name = param_info.param.model;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + (param_info.param.dtype == at::kFloat ? "_f32" : "_bf16");
    });

}  // namespace
}  // namespace kvlab
