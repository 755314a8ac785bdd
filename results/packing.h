// Token ids and kept positions as compact bytes. Reading checks everything: the bytes may come
// from a foreign database.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cache/selection.h"

namespace kvlab {

// One LEB128 number an id.
std::string pack_token_ids(std::span<const int32_t> ids);
absl::StatusOr<std::vector<int32_t>> unpack_token_ids(std::string_view bytes);

// LEB128: prompt length, layers, KV heads; then for each layer and head the count and the gaps
// between positions, less one.
std::string pack_selection(const Selection& selection);
absl::StatusOr<Selection> unpack_selection(std::string_view bytes);

}  // namespace kvlab
