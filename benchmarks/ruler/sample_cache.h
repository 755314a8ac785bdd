// Generated prompts kept on disk, so that a sweep started again does not search filler sizes again.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "benchmarks/ruler/generator.h"

namespace kvlab {

// generate_ruler through <cache>/data/ruler. The file's name holds what the prompts depend on:
// task, length, seed, template, tokenizer hash, `sources_hash` and generator version. A longer
// series starts with the shorter one, so a stored series serves every smaller number of samples.
// A damaged file is made anew; a cache that cannot be written is no error.
absl::StatusOr<std::vector<RulerItem>> cached_ruler(const RulerRequest& request,
                                                    const RulerSources& sources,
                                                    const std::string& sources_hash,
                                                    const Tokenizer& tokenizer);

}  // namespace kvlab
