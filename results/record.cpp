#include "results/record.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/base/check.h"
#include "harness/base/sha256.h"

namespace kvlab {
namespace {

// The value after "name :" in a /proc file; "" where the line is missing.
std::string proc_value(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) {
      const size_t colon = line.find(':');
      const size_t begin = line.find_first_not_of(" \t", colon + 1);
      return colon == std::string::npos || begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

}  // namespace

Json machine_info() {
  Json info = Json::object();
  info["cpu"] = proc_value("/proc/cpuinfo", "model name");
  // Family, model and stepping: virtual machines share one name for many processors.
  const std::string family = proc_value("/proc/cpuinfo", "cpu family");
  if (!family.empty()) {
    info["cpu_signature"] = family + "-" + proc_value("/proc/cpuinfo", "model\t") + "-" +
                            proc_value("/proc/cpuinfo", "stepping");
  }
  info["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  int64_t memory_kib = 0;
  std::istringstream(proc_value("/proc/meminfo", "MemTotal")) >> memory_kib;
  info["memory_bytes"] = memory_kib * 1024;
  struct utsname names {};
  if (::uname(&names) == 0) {
    info["host"] = names.nodename;
    info["kernel"] = names.release;
    info["architecture"] = names.machine;
  }
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    info["gpus"].push_back(proc_value((gpu.path() / "information").c_str(), "Model"));
  }
  return info;
}

Setting make_setting(std::string name, Json json, std::string label) {
  Setting setting;
  setting.hash = sha256_hex(dump_json(Json::array({name, json})));
  setting.label = label.empty() ? name : std::move(label);
  setting.name = std::move(name);
  setting.json = std::move(json);
  return setting;
}

std::string cell_key(const CellId& id) {
  const Json parts = Json::array({id.model_hash, id.protocol_hash, id.method_hash, id.dataset,
                                  id.sample_key, id.budget, id.question_aware});
  return sha256_hex(dump_json(parts)).substr(0, 32);
}

std::string cell_key(const SampleRecord& sample, const ResultRecord& result) {
  return cell_key({.model_hash = sample.model.hash,
                   .protocol_hash = sample.protocol.hash,
                   .method_hash = result.method.hash,
                   .dataset = sample.dataset,
                   .sample_key = sample.sample_key,
                   .budget = result.budget,
                   .question_aware = result.question_aware});
}

std::string_view cell_status_text(CellStatus status) {
  switch (status) {
    case CellStatus::kOk:
      return "ok";
    case CellStatus::kFailed:
      return "failed";
    case CellStatus::kSkipped:
      return "skipped";
  }
  KVLAB_CHECK(false);
}

CellStatus parse_cell_status(std::string_view text) {
  return text == "ok"       ? CellStatus::kOk
         : text == "failed" ? CellStatus::kFailed
                            : CellStatus::kSkipped;
}

KeptEntries kept_entries(const Selection& selection) {
  KeptEntries kept;
  int64_t heads = 0;
  for (const auto& layer : selection.kept) {
    for (const auto& head : layer) {
      const auto size = static_cast<int64_t>(head.size());
      kept.min = heads == 0 ? size : std::min(kept.min, size);
      kept.max = std::max(kept.max, size);
      kept.total += size;
      ++heads;
    }
  }
  kept.mean = heads == 0 ? 0 : static_cast<double>(kept.total) / static_cast<double>(heads);
  return kept;
}

}  // namespace kvlab
