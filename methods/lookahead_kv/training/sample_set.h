// Training samples: prompts as token ids with replies, given ones or the model's own greedy ones,
// which are kept on disk so that they are made once.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"
#include "methods/lookahead_kv/training/recipe.h"

namespace kvlab {

struct TrainingSample {
  std::string kind;
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> reply_ids;  // without a stop id; at least one token
  int64_t max_new_tokens = 0;
};

struct PromptSet {
  std::vector<TrainingSample> samples;  // a reply that the model is to write is empty
  Json facts;                           // what the manifest records: counts, hashes, drops
  std::string hash;                     // over everything that decides the prompts
};

// Builds the recipe's prompts, drops those that share 13 words with a benchmark text or do not fit
// `max_positions`, and turns them into token ids. Dropped ones are counted by reason in `facts`.
absl::StatusOr<PromptSet> make_prompt_set(const TrainingRecipe& recipe, const Tokenizer& tokenizer,
                                          const PromptFormat& format, int64_t max_positions);

// Greedy replies for a few prompts at once; a kill in the middle loses these few only.
using ReplyWriter = std::function<absl::StatusOr<std::vector<std::vector<int32_t>>>(
    std::span<const TrainingSample> prompts)>;
using ReplyProgress = std::function<void(int64_t done, int64_t total)>;

// Reads the replies that `file` holds and has the rest written and appended, `batch` prompts at a
// time. Prompts whose reply is empty are dropped afterwards. Stops early, with what is done kept on
// disk, when interrupted() is set.
absl::Status complete_replies(const std::filesystem::path& file, PromptSet& prompts, int64_t batch,
                              const ReplyWriter& write, const ReplyProgress& progress);

}  // namespace kvlab
