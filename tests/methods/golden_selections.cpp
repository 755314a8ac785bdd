#include "tests/methods/golden_selections.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include "harness/base/status.h"
#include "harness/generation/policy_runner.h"
#include "methods/registry.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

// How a case of a golden file is run here.
struct Run {
  std::string method;
  Json params;
  int64_t budget = 0;
  std::string draft_name;  // tensor with the draft's ids; empty: none
};

// The run of a case name without the length ("snapkv_w32_k5.n64").
using RunOf = Run (*)(const std::string& name);

int64_t number_after(const std::string& name, const std::string& mark) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(name, match, std::regex(mark + "([0-9]+)"))) << name;
  return std::stoll(match[1]);
}

bool starts_with(const std::string& name, const std::string& start) {
  return name.compare(0, start.size(), start) == 0;
}

Run kvpress_run(const std::string& name) {
  Run run{.method = "", .params = {{"variant", "kvpress"}}, .budget = number_after(name, "\\.n")};
  if (name.find("_w") != std::string::npos) {
    run.params["window"] = number_after(name, "_w");
    run.params["kernel"] = number_after(name, "_k");
  }
  if (starts_with(name, "expected_attention_plain")) {
    return {.method = "expected_attention",
            .params = {{"covariance", false}, {"value_norm", false}},
            .budget = run.budget};
  }
  for (const char* plain : {"streaming_llm", "knorm", "keydiff", "expected_attention"}) {
    if (starts_with(name, plain)) {
      return {.method = plain, .params = Json::object(), .budget = run.budget};
    }
  }
  run.method = starts_with(name, "observed_attention") ? "h2o"
               : starts_with(name, "adakv")            ? "adakv"
               : starts_with(name, "pyramidkv")        ? "pyramidkv"
               : starts_with(name, "tova")             ? "tova"
                                                       : "snapkv";
  return run;
}

Run paper_run(const std::string& name) {
  static const std::map<std::string, std::pair<std::string, Json>> runs = {
      {"snapkv", {"snapkv", Json::object()}},
      {"pyramidkv_kvcf", {"pyramidkv", {{"pyramid_rounding", "kvcache_factory"}}}},
      {"pyramidkv_exact", {"pyramidkv", Json::object()}},
      {"adakv_official", {"adakv", {{"variant", "adakv"}}}},
      {"adakv_exact", {"adakv", Json::object()}},
      {"h2o_half", {"h2o", Json::object()}},
      {"h2o_w32", {"h2o", {{"recent_share", 0}, {"window", 32}}}},
      {"tova", {"tova", Json::object()}},
      {"oracle", {"oracle", {{"reply_tokens", 32}}}},
      {"oracle_prompt_keys", {"oracle", {{"reply_tokens", 32}, {"own_keys", false}}}},
  };
  const auto& [method, params] = runs.at(name.substr(0, name.find('.')));
  return {.method = method,
          .params = params,
          .budget = number_after(name, "\\.n"),
          .draft_name = method == "oracle" ? "reply_ids" : ""};
}

Run laq_run(const std::string& name) {
  const int64_t draft = number_after(name, "d");
  const int64_t budget = number_after(name, "\\.n");
  return {
      .method = "laq",
      .params = {{"draft_tokens", draft},
                 {"stage2_window", number_after(name, "\\.w")},
                 {"compat", name.find("official") != std::string::npos ? "official" : "corrected"}},
      .budget = budget,
      .draft_name = fmt::format("d{}.n{}.draft_ids", draft, budget)};
}

Run speckv_run(const std::string& name) {
  const int64_t draft = number_after(name, "\\.d");
  const std::string drafter = name.substr(0, name.find('.'));
  const int64_t window = number_after(name, "\\.w");
  return {.method = "speckv",
          .params = {{"draft_tokens", draft},
                     {"draft_layers", drafter == "self" ? 0 : number_after(drafter, "first")},
                     {"window", window}},
          // The published code's 33rd row comes on top of the budget.
          .budget = number_after(name, "\\.n") + (window == 33 ? 1 : 0),
          .draft_name = fmt::format("{}.d{}.draft_ids", drafter, draft)};
}

struct Tally {
  int64_t heads = 0;
  int64_t tied = 0;
  int64_t swapped = 0;
  int64_t moved = 0;  // heads with one entry more or less
};

// A key's length in the first layer is its token's alone (rotation keeps lengths), so repeated
// tokens tie there exactly: which of them stays is rounding, but the kept tokens must be the same.
bool same_tokens_kept(const std::vector<int32_t>& prompt_ids, const std::vector<int32_t>& ours,
                      const std::vector<int32_t>& theirs) {
  const auto tokens = [&](const std::vector<int32_t>& positions) {
    std::multiset<int32_t> ids;
    for (const int32_t position : positions) {
      ids.insert(prompt_ids[static_cast<size_t>(position)]);
    }
    return ids;
  };
  return tokens(ours) == tokens(theirs);
}

void compare(const GoldenFile& golden, const std::string& key,
             const std::vector<int32_t>& prompt_ids, const Selection& selection, Tally& tally) {
  const auto kept = golden.get<int16_t>(key + ".kept");
  const auto counts = golden.get<int16_t>(key + ".counts");
  const auto lowest_kept = golden.get<float>(key + ".lowest_kept");
  const auto highest_dropped = golden.get<float>(key + ".highest_dropped");
  const auto across_gap = golden.has(key + ".across_gap") ? golden.get<float>(key + ".across_gap")
                                                          : std::vector<float>();
  size_t begin = 0;
  size_t index = 0;
  for (size_t layer = 0; layer < selection.kept.size(); ++layer) {
    for (size_t head = 0; head < selection.kept[layer].size(); ++head, ++index) {
      ASSERT_LT(index, counts.size()) << key;
      const std::vector<int32_t> theirs(kept.begin() + begin, kept.begin() + begin + counts[index]);
      begin += counts[index];
      const std::vector<int32_t>& ours = selection.kept[layer][head];
      ++tally.heads;
      if (ours == theirs) {
        continue;
      }
      if (layer == 0 && key.find(".knorm") != std::string::npos &&
          same_tokens_kept(prompt_ids, ours, theirs)) {
        continue;
      }
      std::vector<int32_t> missing;
      std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                          std::back_inserter(missing));
      // Adaptive budgets compare entries of different heads; a tie there moves one from a head to
      // another.
      const auto more = static_cast<int64_t>(ours.size()) - static_cast<int64_t>(theirs.size());
      if (!across_gap.empty() && std::abs(more) == 1 && missing.size() <= 1) {
        ++tally.moved;
        EXPECT_LE(across_gap[layer], kTie) << key << ", layer " << layer << ", head " << head;
        continue;
      }
      const double gap = std::fabs(lowest_kept[index] - highest_dropped[index]);
      const double size = std::fabs(lowest_kept[index]);
      ++tally.tied;
      tally.swapped += static_cast<int64_t>(missing.size());
      EXPECT_LE(gap, kTie * size) << key << ", layer " << layer << ", head " << head << ": "
                                  << missing.size() << " of " << theirs.size()
                                  << " entries differ, ours are " << ours.size();
      EXPECT_LE(missing.size(), 2U) << key << ", layer " << layer << ", head " << head;
    }
  }
  EXPECT_EQ(index, counts.size()) << key;
}

void expect_selections(const std::filesystem::path& model_dir, const std::string& file,
                       RunOf run_of, double swapped_share) {
  const GoldenFile golden(golden_dir() / file);
  const LoadOptions load{.dtype = at::kFloat};
  const auto model = CausalLm::load(model_dir, load);
  ASSERT_TRUE(model.ok()) << model.status();
  DraftModels draft_models(model_dir, load);
  Tally tally;
  for (const std::string& length : golden.cases()) {
    std::vector<std::string> names;
    std::vector<Run> runs;
    std::vector<std::unique_ptr<EvictionPolicy>> policies;
    std::vector<const EvictionPolicy*> plain_policies;
    std::vector<SelectionRequest> requests;
    for (const std::string& name : golden.names_with(length + ".", ".kept")) {
      Run run = run_of(name);
      auto policy = make_policy(run.method, run.params);
      ASSERT_TRUE(policy.ok()) << policy.status();
      requests.push_back({.policy = policy->get(), .budget = {run.budget}});
      plain_policies.push_back(policy->get());
      policies.push_back(*std::move(policy));
      runs.push_back(std::move(run));
      names.push_back(name);
    }
    ASSERT_FALSE(requests.empty());
    const auto needs = combined_needs(plain_policies);
    ASSERT_TRUE(needs.ok()) << needs.status();
    const auto prompt =
        (*model)->prefill(golden.get<int32_t>(length + ".prompt_ids"), {.needs = *needs});
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    const auto batch = select_entries(**model, *prompt, requests,
                                      {.max_new_tokens = 32,
                                       .stop_ids = (*model)->config().stop_ids,
                                       .draft_models = &draft_models,
                                       .keep_going = {}});
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string key = length + "." + names[i];
      ASSERT_TRUE(batch->arms[i].ok()) << key << ": " << batch->arms[i].status();
      if (!runs[i].draft_name.empty()) {
        EXPECT_EQ(batch->arms[i]->draft_ids, golden.get<int32_t>(length + "." + runs[i].draft_name))
            << key;
      }
      compare(golden, key, (*prompt)->token_ids, batch->arms[i]->result.selection, tally);
    }
  }
  fmt::print(
      "{}: {} heads compared, {} differ by a tie, {} entries swapped, {} heads have one more or "
      "less by a tie between heads\n",
      file, tally.heads, tally.tied, tally.swapped, tally.moved);
  EXPECT_GT(tally.heads, 0);
  EXPECT_LE(static_cast<double>(tally.moved), 0.002 * static_cast<double>(tally.heads));
  EXPECT_LE(static_cast<double>(tally.tied), swapped_share * static_cast<double>(tally.heads));
}

}  // namespace

void expect_kvpress_selections(const std::filesystem::path& model_dir, const std::string& model) {
  expect_selections(model_dir, "kvpress/" + model + ".safetensors", kvpress_run, 0.01);
}
void expect_paper_selections(const std::filesystem::path& model_dir, const std::string& model) {
  expect_selections(model_dir, "methods/papers-" + model + ".safetensors", paper_run, 0.01);
}
void expect_laq_selections(const std::filesystem::path& model_dir, const std::string& model) {
  expect_selections(model_dir, "methods/laq-" + model + ".safetensors", laq_run, 0.01);
}
void expect_speckv_selections(const std::filesystem::path& model_dir, const std::string& model) {
  expect_selections(model_dir, "methods/speckv-" + model + ".safetensors", speckv_run, 0.01);
}

}  // namespace kvlab
