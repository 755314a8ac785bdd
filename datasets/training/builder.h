// Builds a set of training prompts from a corpus and a mix.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "datasets/training/documents.h"
#include "datasets/training/filler.h"
#include "datasets/training/training_prompt.h"
#include "harness/base/json.h"

namespace kvlab {

struct TrainingMix {
  int64_t num_prompts = 1000;
  int64_t min_tokens = 384;  // wanted prompt lengths: uniform in the logarithm
  int64_t max_tokens = 2048;
  uint64_t seed = 1;
  std::map<std::string, double> weights;  // kind to share; need not sum to one

  // Reads the "data" object of a recipe. Unknown kinds are an error that lists the known ones.
  static absl::StatusOr<TrainingMix> parse(const Json& object, std::string_view origin);
};

// Prompt i depends on the mix's seed, its weights (without any: the kinds there are) and i only, so
// a longer set begins with the shorter one.
std::vector<TrainingPrompt> build_training_prompts(const TrainingCorpus& corpus,
                                                   const TrainingMix& mix,
                                                   const TokenCounter& count);

}  // namespace kvlab
