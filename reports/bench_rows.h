// What tables and charts of `kvlab bench` tell measurements apart by.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <string>
#include <utility>
#include <vector>

#include "results/bench_data.h"

namespace kvlab {

// Measurements of two of these never stand in one table: a model's label says neither its dtype nor
// its device.
struct BenchSetting {
  std::string model;
  std::string dtype;
  std::string device;
  auto operator<=>(const BenchSetting&) const = default;

  std::string text() const { return fmt::format("{} ({}, {})", model, dtype, device); }
  std::vector<std::pair<std::string, std::string>> attributes() const {
    return {{"model", model}, {"dtype", dtype}, {"device", device}};
  }
};
inline BenchSetting bench_setting(const StoredBench& row) {
  return {row.model, row.dtype, row.device};
}

// What a row of a table, or a line of a chart, is.
struct BenchRowKey {
  std::string method;
  std::string budget;
  std::string form;
  auto operator<=>(const BenchRowKey&) const = default;

  std::string evicted() const {
    if (budget == "full") {
      return form == "by_layers" ? "nothing, by layers" : "nothing";
    }
    return form == "by_layers" ? "inside prefill" : "after prefill";
  }
};

}  // namespace kvlab
