// LookaheadKV as a query source: the learned tokens run over the finished prompt, and their queries
// stand in for the future reply's.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "methods/query_source.h"

namespace kvlab {

struct LookaheadSourceOptions {
  std::filesystem::path adapter;  // a file, or the name of one that ships
  bool accept_unknown_base = false;
};

std::unique_ptr<QuerySource> make_lookahead_source(const LookaheadSourceOptions& options);

}  // namespace kvlab
