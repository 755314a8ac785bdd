// What the sweep hands to the database: plain data, one struct for each kind of row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "harness/cache/selection.h"

namespace kvlab {

// One process start.
struct RunInfo {
  std::string version;        // kvlab's
  std::string git_commit;     // "" outside a checkout
  std::string build_type;     // "Release"
  Json machine;               // see machine_info()
  Json libraries;             // name to version
  Json config;                // the whole sweep file, as it was written
  std::string command_line;   // as typed
  std::string shard = "1/1";  // "i/n"
};

// CPU model, cores, memory, host, kernel and NVIDIA GPUs of this machine, read from /proc.
Json machine_info();

// A named bundle of settings, stored once and found by its hash. Two settings are the same exactly
// when name and JSON are; the label is only how tables call it.
//   model:    directory name; {"config_hash", "tokenizer_hash", "dtype", "device", ...}
//   protocol: protocol name ("ruler-official"); the benchmark's resolved protocol
//   method:   "snapkv"; every parameter, defaults filled in
struct Setting {
  std::string name;
  Json json;
  std::string label;  // "": the name
  std::string hash;   // SHA-256 of name and canonical JSON
};
Setting make_setting(std::string name, Json json, std::string label = "");

// What makes a cell unique, and therefore what a sweep that runs again skips by.
struct CellId {
  std::string model_hash;
  std::string protocol_hash;
  std::string method_hash;
  std::string dataset;
  std::string sample_key;
  std::string budget;  // "128", "12.5%"; "full" where the method takes no budget
  bool question_aware = true;
};
// 32 hex digits.
std::string cell_key(const CellId& id);

// One prompt as one model under one protocol saw it.
struct SampleRecord {
  Setting model;
  Setting protocol;

  std::string sample_key;  // unique within `dataset`
  std::string benchmark;
  std::string dataset;
  std::string task;
  int64_t length = 0;  // nominal; 0 where the benchmark has none
  int64_t index = 0;
  std::vector<std::string> references;
  Json extra = Json::object();
  std::string text_hash;  // SHA-256 of the benchmark's prompt text, before template and truncation

  std::string prompt_hash;                   // SHA-256 of the rendered prompt's token ids
  int64_t prompt_tokens = 0;                 // after template and truncation
  std::optional<int64_t> question_start;     // token index; none where there is no split
  std::optional<std::string> rendered_text;  // stored only when given
};

enum class CellStatus { kOk, kFailed, kSkipped };
// As the database has it: "ok", "failed", "skipped". Its schema allows no other text, so any other
// is taken for the last.
std::string_view cell_status_text(CellStatus status);
CellStatus parse_cell_status(std::string_view text);

// Seconds. The prefill is shared by all arms of a sample; a decoding step by the arms of its batch.
struct Timings {
  double prefill_s = 0;
  double query_s = 0;    // making queries: learned rows
  double score_s = 0;    // attention mass, pooling
  double choose_s = 0;   // top-k, allocation
  double draft_s = 0;    // draft decoding and reading
  double compact_s = 0;  // gathering the kept entries
  double decode_s = 0;   // from the batch's start to this arm's last step
  int64_t decode_steps = 0;
  int64_t arms_in_batch = 0;  // at its start
};

// Prompt entries an arm really held, measured in its cache. Counts are per layer and KV head.
struct KeptEntries {
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;
  int64_t total = 0;  // over all layers and heads
};
KeptEntries kept_entries(const Selection& selection);

// One cell: a method at a budget on the sample.
struct ResultRecord {
  Setting method;
  std::string budget = "full";            // as in CellId
  std::optional<int64_t> budget_entries;  // resolved, per layer and KV head; none for "full"
  bool question_aware = true;

  CellStatus status = CellStatus::kOk;
  std::string reason;  // why it failed or was skipped

  // Where status is kOk:
  double score = 0;    // 0..100
  std::string metric;  // as tables name it
  std::string reply;
  std::vector<int32_t> reply_token_ids;
  std::string stop_reason;
  int64_t new_tokens = 0;
  int64_t draft_tokens = 0;
  KeptEntries kept;
  int64_t cache_bytes = 0;  // keys and values of the kept prompt entries
  Timings timings;
  std::optional<Selection> selection;  // stored only when given
};

// The cell's key; the writer computes it the same way.
std::string cell_key(const SampleRecord& sample, const ResultRecord& result);

}  // namespace kvlab
