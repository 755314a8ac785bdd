// Joining databases that shards or machines wrote.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kvlab {

// What to do with a cell that two databases hold as ok with another reply, score or kept count.
enum class OnConflict {
  kRefuse,  // an error that names the cells; nothing of the source is written
  kRecord,  // the stored cell stays, the other goes to the table `conflicts`
};

struct MergeCounts {
  std::filesystem::path source;
  int64_t added = 0;      // cells that were new
  int64_t same = 0;       // cells stored already with the same outcome
  int64_t replaced = 0;   // failed or skipped cells that the source has as ok
  int64_t conflicts = 0;  // recorded ones
};

// Merges the sources into `target` (made when missing), each in one transaction: on an error the
// sources before it are in, and nothing of it is. Merging the same sources again changes nothing.
// Timings and run rows may differ between equal cells: the first one's stay. Errors: a source that
// is no database of kvlab's or is the target; one sample name with two texts or prompts; conflicts,
// unless recorded.
absl::StatusOr<std::vector<MergeCounts>> merge_databases(
    std::span<const std::filesystem::path> sources, const std::filesystem::path& target,
    OnConflict on_conflict = OnConflict::kRefuse);

}  // namespace kvlab
