// LookaheadKV as a query source: the learned tokens run over the finished prompt, and their queries
// stand in for the future reply's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "methods/query_source.h"

namespace kvlab {

struct LookaheadSourceOptions {
  std::filesystem::path adapter;
  int64_t num_tokens = 32;  // the adapter's
  int64_t tail_rows = 0;    // last prompt tokens asked beside the learned ones
  bool accept_unknown_base = false;
};

// The adapter is loaded when the first model is checked, and refused by name on another model.
std::unique_ptr<QuerySource> make_lookahead_source(const LookaheadSourceOptions& options);

}  // namespace kvlab
