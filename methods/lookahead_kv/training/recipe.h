// A training recipe: everything that decides the trained adapter, in one JSON file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/training/builder.h"
#include "harness/base/json.h"
#include "methods/lookahead_kv/adapter.h"

namespace kvlab {

enum class Replies { kOwn, kGiven, kGivenOrOwn };

struct TrainingRecipe {
  std::filesystem::path path;
  std::filesystem::path model_dir;

  LookaheadShape shape;
  std::string token_init = "embedding";  // or "normal"
  uint64_t init_seed = 1;
  std::filesystem::path start_from;  // an adapter to go on from; empty: a fresh one

  std::filesystem::path text_dir;  // plain text documents, see datasets/training/documents.h
  TrainingMix mix;
  std::vector<std::filesystem::path> instruction_files;
  // The model's own greedy replies; or those of the instruction files and the right answers that
  // kinds of prompts know, and prompts without are dropped or get the model's own.
  Replies replies = Replies::kOwn;
  int64_t max_reply_tokens = 128;
  int64_t held_out = 32;                                 // the last prompts, never trained on
  std::vector<std::filesystem::path> benchmark_texts;    // must share no 13 words with a prompt
  std::vector<std::filesystem::path> boilerplate_texts;  // licences: what may be shared by anyone

  double learning_rate = 1e-3;
  int64_t batch = 4;
  double passes = 1;  // over the training prompts
  int64_t warmup_steps = 10;
  double clip = 1.0;  // largest norm of all gradients together
  uint64_t order_seed = 1;
  int64_t evaluate_every = 50;    // steps
  int64_t checkpoint_every = 10;  // steps
  std::vector<int64_t> recall_budgets = {64, 128};

  Json source;       // as written, with its bases merged in
  std::string hash;  // SHA-256 of `source`
};

// A recipe with "base" changes another one, named relative to it (RFC 7396: objects are merged key
// by key, lists replaced). Errors name the file, the key and what would be valid; unknown keys are
// refused.
absl::StatusOr<TrainingRecipe> load_training_recipe(const std::filesystem::path& path);

}  // namespace kvlab
