// tokenizer.json's post_processor: the special tokens around a sequence.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Knows TemplateProcessing, ByteLevel (which moves offsets only) and sequences of them.
struct PostProcessor {
  std::vector<int32_t> before;
  std::vector<int32_t> after;

  static absl::StatusOr<PostProcessor> from_json(const Json& post_processor,
                                                 std::string_view where);
};

}  // namespace kvlab
