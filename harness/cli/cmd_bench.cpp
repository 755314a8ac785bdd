// kvlab bench: time and memory of methods, as one request would meet them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>

#include "benchmarks/kernels/machine_peaks.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/say.h"
#include "harness/base/status.h"
#include "harness/base/version.h"
#include "harness/bench/bench_runner.h"
#include "harness/bench/machine_state.h"
#include "harness/cli/commands.h"
#include "harness/cli/process_info.h"
#include "harness/cli/threads_option.h"
#include "harness/kernels/parallel.h"
#include "harness/model/threads.h"
#include "results/store.h"

namespace kvlab {
namespace {

struct BenchFlags {
  std::string config;
  std::string db;
  BenchOverrides overrides;
  std::string device;
  bool list = false;
  bool allow_debug = false;
};

class StoringObserver final : public BenchObserver {
 public:
  StoringObserver(ResultStore& store, int64_t total)
      : store_(store), progress_("bench", static_cast<double>(total), 0, stderr) {}

  absl::Status on_measurement(const BenchRecord& record) override {
    const BenchMeasurement& m = record.measurement;
    if (m.status == CellStatus::kFailed) {
      progress_.message(fmt::format("failed: {} {} at {} tokens: {}", record.method.label, m.budget,
                                    m.prompt_tokens, m.reason));
    }
    for (const std::string& warning : timing_warnings(m.others_busy)) {
      if (warnings_.insert(warning.substr(0, 15)).second) {
        progress_.message("warning: " + warning);
      }
    }
    return store_.write_bench(record);
  }
  void on_progress(int64_t, int64_t, const std::string& what) override {
    progress_.advance(1, what);
  }
  bool keep_going() override { return !interrupted(); }
  void finish() { progress_.finish(); }

 private:
  ResultStore& store_;
  Progress progress_;
  std::set<std::string> warnings_;  // each kind once
};

// What predictions are made for: the device named, or this machine as measured now (a GPU by its
// data sheet). None where its peak is not known: measuring needs no prediction.
absl::StatusOr<std::optional<Device>> this_device(const BenchConfig& config,
                                                  const std::string& named) {
  if (!named.empty()) {
    return find_device(named);
  }
  if (config.device == "cuda") {
    for (const Json& gpu : machine_info().value("gpus", Json::array())) {
      const auto name = gpu.get<std::string>();
      for (const auto& [part, device] : {std::pair("H100", "h100"), std::pair("H200", "h200")}) {
        if (name.find(part) != std::string::npos) {
          return find_device(device);
        }
      }
    }
    say(stderr,
        "no predictions: this GPU's figures are not known; --device-model names a device\n");
    return std::nullopt;
  }
  const MachinePeaks& peaks = machine_peaks();
  Device device;
  device.name = "this machine";
  device.flops_per_s = 1e9 * peaks.gemm_gflops(config.dtype == "bfloat16");
  device.bytes_per_s = 1e9 * peaks.read_gbytes;
  if (!(device.flops_per_s > 0)) {
    say(stderr,
        "no predictions: without AVX-512 this processor's peak cannot be measured; --device-model "
        "names a device\n");
    return std::nullopt;
  }
  return device;
}

absl::Status bench(const BenchFlags& flags) {
  if (is_debug_build() && !flags.allow_debug) {
    return failed_precondition(
        "this is a {} build: its timings mean nothing; build the release preset",
        build_type().empty() ? "debug" : build_type());
  }
  KVLAB_ASSIGN_OR_RETURN(const BenchConfig config,
                         load_bench_config(flags.config, flags.overrides));
  if (config.threads > 0) {
    set_compute_threads(config.threads);
  }
  if (flags.db.empty() && !flags.list) {
    return invalid_argument("--db FILE is needed: where measurements go");
  }
  std::optional<Device> device;
  if (!flags.list) {
    KVLAB_ASSIGN_OR_RETURN(device, this_device(config, flags.device));
  }
  KVLAB_ASSIGN_OR_RETURN(const auto runner, BenchRunner::make(config, device));
  if (flags.list) {
    for (const BenchCell& cell : runner->cells()) {
      fmt::print("{:<24} budget {:<6} {:>7} tokens  {:>3} arms  {}\n", cell.method.label,
                 cell.takes_budget ? fmt::format("{}", cell.budget) : "full", cell.length,
                 cell.arms, form_name(cell.form));
    }
    return absl::OkStatus();
  }
  Json machine = machine_info();
  machine["threads"] = compute_threads();
  machine["state"] = machine_state();
  if (device) {
    machine["cost_model"] = {{"device", device->name},
                             {"flops_per_s", device->flops_per_s},
                             {"bytes_per_s", device->bytes_per_s},
                             {"compute_efficiency", device->compute_efficiency},
                             {"memory_efficiency", device->memory_efficiency}};
  }
  KVLAB_ASSIGN_OR_RETURN(const auto store, ResultStore::open(flags.db, ResultStore::Mode::kCreate));
  KVLAB_ASSIGN_OR_RETURN(const int64_t run_id,
                         store->begin_run({.version = std::string(kvlab_version()),
                                           .git_commit = std::string(git_commit()),
                                           .build_type = std::string(build_type()),
                                           .machine = machine,
                                           .libraries = library_versions(),
                                           .config = config.source,
                                           .command_line = command_line()}));
  catch_interrupts();
  const auto total =
      static_cast<int64_t>(runner->cells().size()) * (config.warmup + config.repetitions);
  StoringObserver observer(*store, total);
  const absl::Status status = runner->run(observer);
  if (!status.ok()) {
    (void)store->finish_run(absl::IsCancelled(status) ? "interrupted"
                                                      : "failed: " + message_of(status));
    return status;
  }
  KVLAB_RETURN_IF_ERROR(store->finish_run("done"));
  observer.finish();
  say(stderr, "run {}: {} measurements in {}; `kvlab report {} --layout efficiency`\n", run_id,
      total - static_cast<int64_t>(runner->cells().size()) * config.warmup, flags.db, flags.db);
  return absl::OkStatus();
}

}  // namespace

void add_bench_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure time and memory of methods, one request at a time");
  command->add_option("config", flags->config, "Bench file (JSON)")->required();
  command->add_option("--db", flags->db, "Results database (SQLite), made if absent");
  command->add_option("--lengths", flags->overrides.lengths, "Prompt tokens instead of the file's")
      ->delimiter(',');
  command->add_option("--budgets", flags->overrides.budgets, "Budgets instead of the file's")
      ->delimiter(',');
  command->add_option("--arms", flags->overrides.arms, "Arms instead of the file's")
      ->delimiter(',');
  command
      ->add_option("--methods", flags->overrides.methods,
                   "Only these of the file's methods, by label or name")
      ->delimiter(',');
  command->add_option("--repetitions", flags->overrides.repetitions,
                      "Stored rounds instead of the file's");
  add_threads_option(*command, flags->overrides.threads);
  command->add_option("--device-model", flags->device,
                      "Device whose figures the predictions use (h100, h200) instead of this "
                      "machine's measured ones");
  command->add_flag("--list", flags->list, "List what would be measured");
  command->add_flag("--allow-debug", flags->allow_debug,
                    "Run in a debug build all the same: for tests of the program itself");
  command->footer(
      "Rounds are shuffled over methods, lengths and budgets; the first ones warm up.\n"
      "Examples:\n"
      "  kvlab bench configs/bench/smollm2.json --db bench.sqlite\n"
      "  kvlab bench configs/bench/smollm2.json --db bench.sqlite --lengths 4096 --repetitions 9\n"
      "  kvlab report bench.sqlite --layout efficiency");
  command->callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

}  // namespace kvlab
