// The results database as the sweep uses it: one SQLite file, one transaction a sample.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "results/bench_data.h"
#include "results/record.h"
#include "results/sqlite.h"

namespace kvlab {

struct StoreOptions {
  // How long a write waits for another process's lock before it fails.
  std::chrono::milliseconds busy_timeout{30'000};
};

class ResultStore final {
 public:
  enum class Mode {
    kCreate,  // reads and writes; makes the file, migrates an older one
    kWrite,   // the same for a file that must exist
    kRead,    // never changes a byte
  };

  // Errors name the file: no SQLite database, not one of kvlab's, written by a newer kvlab,
  // read-only, locked, disk full.
  static absl::StatusOr<std::unique_ptr<ResultStore>> open(const std::filesystem::path& path,
                                                           Mode mode,
                                                           const StoreOptions& options = {});

  // The run that rows written from now on belong to.
  absl::StatusOr<int64_t> begin_run(const RunInfo& info);
  // `outcome`: "done", "interrupted", "out of time", "failed: ...".
  absl::Status finish_run(std::string_view outcome);

  // Keys of cells that need not run again: every stored one, or, to retry, those that did not fail.
  absl::StatusOr<absl::flat_hash_set<std::string>> stored_keys(bool retry_failed = false) const;
  absl::StatusOr<bool> contains(const std::string& key, bool retry_failed = false) const;

  // Stores a sample with its cells in one transaction, all or nothing, and returns how many cells
  // were written. A cell already stored as ok is left as it is; a failed or skipped one is
  // replaced. Needs begin_run(). Errors: another prompt or other references already stored under
  // this data set and sample key.
  absl::StatusOr<int64_t> write_sample(const SampleRecord& sample,
                                       std::span<const ResultRecord> results);

  // Stores one measurement of `kvlab bench`. Needs begin_run().
  absl::Status write_bench(const BenchRecord& record);

  const std::filesystem::path& path() const { return path_; }
  Database& database() { return *db_; }
  const Database& database() const { return *db_; }

 private:
  ResultStore(std::filesystem::path path, std::unique_ptr<Database> db);

  absl::StatusOr<int64_t> setting_id(const std::string& table, const Setting& setting);
  absl::StatusOr<int64_t> sample_id(const SampleRecord& sample);
  absl::StatusOr<int64_t> prompt_id(const SampleRecord& sample);
  absl::StatusOr<bool> write_cell(int64_t prompt, const SampleRecord& sample,
                                  const ResultRecord& result);
  absl::Status write_reply(int64_t result_id, const ResultRecord& result);

  std::filesystem::path path_;
  std::unique_ptr<Database> db_;
  int64_t run_id_ = 0;
};

}  // namespace kvlab
