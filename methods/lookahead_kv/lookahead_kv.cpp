// The method: learned lookahead tokens as query source, uniform budgets.
#include <charconv>

#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/model/safetensors.h"
#include "methods/lookahead_kv/adapter_files.h"
#include "methods/lookahead_kv/lookahead_source.h"
#include "methods/preset_parts.h"
#include "methods/presets.h"
#include "methods/scorers.h"

namespace kvlab {
namespace {

absl::StatusOr<int64_t> num_tokens_in(const std::filesystem::path& adapter) {
  KVLAB_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::open(adapter));
  const auto& metadata = file->header().metadata;
  const auto it = metadata.find("num_lookahead_tokens");
  int64_t tokens = 0;
  if (it == metadata.end() ||
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), tokens).ec !=
          std::errc() ||
      tokens < 1) {
    return invalid_argument("{}: not a LookaheadKV adapter: it does not say how many tokens it has",
                            adapter.string());
  }
  return tokens;
}

}  // namespace

MethodDefinition lookahead_kv_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "lookahead_kv",
      .summary = "attention of learned tokens appended to the prompt: a reply's stand-in",
      .source = "arXiv 2603.10899 (LookaheadKV), eq. 3 and section 3; per KV head",
      .cost = "32 rows through the model after prefill, their rows against the prompt's keys",
      .parameters = with_selection_parameters(
          {row_reduction_parameter("mean"),
           text_parameter("adapter", "trained adapter: a file, or the name of one that ships",
                          "smollm2-135m-instruct"),
           flag_parameter("accept_unknown_base",
                          "use an adapter that does not name the model it was trained for", false)},
          {.window_meaning = "last prompt tokens asked beside the learned ones, always kept",
           .pooling = "max"}),
      .variants = {},
  };
  definition.make = [](const Json& params) -> absl::StatusOr<std::unique_ptr<EvictionPolicy>> {
    LookaheadSourceOptions options;
    KVLAB_ASSIGN_OR_RETURN(options.adapter, find_adapter(params.at("adapter").get<std::string>()));
    KVLAB_ASSIGN_OR_RETURN(options.num_tokens, num_tokens_in(options.adapter));
    options.tail_rows = params.at("window").get<int64_t>();
    options.accept_unknown_base = params.at("accept_unknown_base").get<bool>();
    // Rows of two adapters under one name must never be taken for the same method.
    Json resolved = params;
    KVLAB_ASSIGN_OR_RETURN(resolved["adapter_sha256"], sha256_file(options.adapter));
    return scored_policy(
        "lookahead_kv", resolved,
        make_attention_scorer(make_lookahead_source(options), read_row_reduction(params)));
  };
  return definition;
}

}  // namespace kvlab
