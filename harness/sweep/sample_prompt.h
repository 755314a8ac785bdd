// A benchmark's sample as the model sees it: token ids, and the facts that make prompts comparable.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/benchmark.h"
#include "harness/base/json.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

struct SamplePrompt {
  std::vector<int32_t> token_ids;
  std::optional<int64_t> question_start;  // token index; none where the prompt has no split
  std::string text;                       // rendered, before tokenisation
  int64_t bos_count = 0;
  bool templated = false;
  bool truncated = false;
};

// Truncates, renders and tokenises as the sample and the protocol say. Errors: an empty prompt, a
// beginning-of-text token too many or missing.
absl::StatusOr<SamplePrompt> build_sample_prompt(const Sample& sample, const Json& protocol,
                                                 const Tokenizer& tokenizer,
                                                 const PromptFormat& format);

// The name a protocol goes by: its "name", or the benchmark's.
std::string protocol_name(const Json& protocol, const std::string& benchmark);

}  // namespace kvlab
