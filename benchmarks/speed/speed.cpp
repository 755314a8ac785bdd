// Times a model's prefill and its decoding steps, for any number of arms with caches of any length.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "harness/base/allocator.h"
#include "harness/base/clock.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "harness/base/version.h"
#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "harness/model/threads.h"

namespace kvlab {
namespace {

struct Flags {
  std::string model;
  std::string dtype = "bfloat16";
  int64_t length = 4096;
  int64_t chunk = 2048;
  std::vector<std::string> decode = {"1x4096", "12x4096"};
  int64_t tokens = 16;
  int64_t rounds = 1;
  int threads = 2;
};

// A batch of arms, every cache `length` entries long.
struct Shape {
  int64_t arms = 0;
  int64_t length = 0;
};

absl::StatusOr<Shape> parse_shape(const std::string& text) {
  Shape shape;
  const char* end = text.data() + text.size();
  const auto arms = std::from_chars(text.data(), end, shape.arms);
  if (arms.ec == std::errc() && arms.ptr != end && *arms.ptr == 'x') {
    const auto length = std::from_chars(arms.ptr + 1, end, shape.length);
    if (length.ec == std::errc() && length.ptr == end && shape.arms >= 1 && shape.length >= 1) {
      return shape;
    }
  }
  return invalid_argument("--decode {}: write it as ARMSxLENGTH, 12x4096", text);
}

// The first `length` entries of every head, copied for each arm, as arms of a sweep own theirs.
std::vector<KvCache> make_caches(const PromptState& prompt, const Shape& shape, int64_t tokens) {
  std::vector<int32_t> positions(static_cast<size_t>(shape.length));
  std::iota(positions.begin(), positions.end(), 0);
  Selection selection;
  selection.prompt_len = prompt.prompt_len();
  const auto heads = static_cast<size_t>(prompt.layers.front().keys.size(0));
  selection.kept.assign(prompt.layers.size(), std::vector<std::vector<int32_t>>(heads, positions));
  std::vector<KvCache> caches;
  for (int64_t arm = 0; arm < shape.arms; ++arm) {
    caches.push_back(KvCache::compact(prompt, selection, tokens));
  }
  return caches;
}

// Milliseconds of a step, one token for every arm, the choice of the next token included.
absl::StatusOr<double> time_decode(CausalLm& model, const PromptState& prompt, const Shape& shape,
                                   int64_t tokens) {
  std::vector<KvCache> caches = make_caches(prompt, shape, tokens + 1);
  std::vector<KvCache*> pointers;
  for (KvCache& cache : caches) {
    pointers.push_back(&cache);
  }
  std::vector<int32_t> ids(caches.size(), 7);
  Clock::time_point start;
  for (int64_t step = 0; step <= tokens; ++step) {
    if (step == 1) {  // the first one warms up
      start = Clock::now();
    }
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor logits, model.decode_step(ids, pointers, {}));
    for (size_t arm = 0; arm < ids.size(); ++arm) {
      KVLAB_ASSIGN_OR_RETURN(ids[arm], argmax_token(logits[static_cast<int64_t>(arm)]));
    }
  }
  return seconds_since(start) * 1000 / static_cast<double>(tokens);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

absl::Status run(const Flags& flags) {
  set_compute_threads(flags.threads);
  std::vector<Shape> shapes;
  int64_t longest = flags.length;
  for (const std::string& text : flags.decode) {
    KVLAB_ASSIGN_OR_RETURN(shapes.emplace_back(), parse_shape(text));
    longest = std::max(longest, shapes.back().length);
  }
  KVLAB_ASSIGN_OR_RETURN(
      const auto model,
      CausalLm::load(flags.model,
                     {.dtype = flags.dtype == "float32" ? at::kFloat : at::kBFloat16}));
  std::mt19937_64 random(1);
  std::vector<int32_t> ids(static_cast<size_t>(longest));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(3 + random() % static_cast<uint64_t>(model->config().vocab_size - 3));
  }
  const PrefillOptions options{.chunk_size = flags.chunk, .needs = {}};
  // Also the warm-up.
  KVLAB_ASSIGN_OR_RETURN(const auto prompt, model->prefill(ids, options));
  std::vector<double> prefill;
  std::vector<std::vector<double>> decode(shapes.size());
  for (int64_t round = 0; round < flags.rounds; ++round) {
    const auto start = Clock::now();
    KVLAB_RETURN_IF_ERROR(
        model->prefill(std::span(ids).first(static_cast<size_t>(flags.length)), options).status());
    prefill.push_back(seconds_since(start));
    for (size_t i = 0; i < shapes.size(); ++i) {
      KVLAB_ASSIGN_OR_RETURN(decode[i].emplace_back(),
                             time_decode(*model, *prompt, shapes[i], flags.tokens));
    }
  }
  Json result;
  result["prefill_s"] = median(prefill);
  for (size_t i = 0; i < shapes.size(); ++i) {
    result["decode_ms_per_step"][flags.decode[i]] = median(decode[i]);
  }
  result["commit"] = std::string(git_commit());
  result["malloc"] = allocator_name();
  result["build"] = std::string(build_type());
  std::printf("%s\n", result.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace kvlab

int main(int argc, char** argv) {
  kvlab::Flags flags;
  CLI::App app("Times a model's prefill and its decoding steps; prints one line of JSON.");
  app.add_option("--model", flags.model, "Hugging Face directory")->required();
  app.add_option("--dtype", flags.dtype)->check(CLI::IsMember({"bfloat16", "float32"}));
  app.add_option("--length", flags.length, "prompt tokens")->check(CLI::PositiveNumber);
  app.add_option("--chunk", flags.chunk, "prompt tokens at a time")->check(CLI::PositiveNumber);
  app.add_option("--decode", flags.decode, "batches to decode: ARMSxLENGTH of their caches");
  app.add_option("--tokens", flags.tokens, "steps of a batch")->check(CLI::PositiveNumber);
  app.add_option("--rounds", flags.rounds, "medians of so many")->check(CLI::PositiveNumber);
  app.add_option("--threads", flags.threads)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (const absl::Status status = kvlab::run(flags); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
