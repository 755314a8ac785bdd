#include "datasets/training/builder.h"

#include <cmath>

#include "datasets/training/prompt_kinds.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

const PromptKind* find_kind(const std::string& name) {
  for (const PromptKind& kind : prompt_kinds()) {
    if (name == kind.name) {
      return &kind;
    }
  }
  return nullptr;
}

// Spreads seeds that differ in one bit (SplitMix64's finaliser, Steele et al. 2014).
uint64_t mix_bits(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

}  // namespace

absl::StatusOr<TrainingMix> TrainingMix::parse(const Json& object, std::string_view origin) {
  TrainingMix mix;
  KVLAB_ASSIGN_OR_RETURN(mix.num_prompts,
                         json_get_or<int64_t>(object, "num_prompts", mix.num_prompts, origin));
  KVLAB_ASSIGN_OR_RETURN(mix.min_tokens,
                         json_get_or<int64_t>(object, "min_tokens", mix.min_tokens, origin));
  KVLAB_ASSIGN_OR_RETURN(mix.max_tokens,
                         json_get_or<int64_t>(object, "max_tokens", mix.max_tokens, origin));
  KVLAB_ASSIGN_OR_RETURN(mix.seed, json_get_or<uint64_t>(object, "seed", mix.seed, origin));
  if (mix.num_prompts < 1 || mix.min_tokens < 256 || mix.max_tokens < mix.min_tokens) {
    return invalid_argument(
        "{}: needs num_prompts >= 1 and 256 <= min_tokens <= max_tokens; got {}, {}, {}", origin,
        mix.num_prompts, mix.min_tokens, mix.max_tokens);
  }
  for (const PromptKind& kind : prompt_kinds()) {
    mix.weights[kind.name] = object.contains("weights") ? 0.0 : 1.0;
  }
  const Json weights = object.value("weights", Json::object());
  for (const auto& [name, weight] : weights.items()) {
    if (find_kind(name) == nullptr) {
      std::string known;
      for (const PromptKind& kind : prompt_kinds()) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
      }
      return invalid_argument("{}: no kind of prompt \"{}\"; known: {}", origin, name, known);
    }
    if (!weight.is_number() || weight.get<double>() < 0) {
      return invalid_argument("{}: the weight of \"{}\" is not a number of at least 0", origin,
                              name);
    }
    mix.weights[name] = weight.get<double>();
  }
  double total = 0;
  for (const auto& [name, weight] : mix.weights) {
    total += weight;
  }
  if (total <= 0) {
    return invalid_argument("{}: all weights are 0", origin);
  }
  return mix;
}

std::vector<TrainingPrompt> build_training_prompts(const TrainingCorpus& corpus,
                                                   const TrainingMix& mix,
                                                   const TokenCounter& count) {
  double total = 0;
  for (const auto& [name, weight] : mix.weights) {
    total += weight;
  }
  std::vector<TrainingPrompt> prompts;
  for (int64_t i = 0; i < mix.num_prompts; ++i) {
    SeededRandom random(mix_bits(mix.seed * 0x100000001ULL + static_cast<uint64_t>(i)));
    const double log_length = std::log(static_cast<double>(mix.min_tokens)) +
                              random.unit() * std::log(static_cast<double>(mix.max_tokens) /
                                                       static_cast<double>(mix.min_tokens));
    double place = random.unit() * total;
    const PromptKind* chosen = nullptr;
    for (const auto& [name, weight] : mix.weights) {
      if (weight > 0) {
        chosen = find_kind(name);
        if (place < weight) {
          break;
        }
      }
      place -= weight;
    }
    const PromptContext context{
        .corpus = &corpus, .count = count, .tokens = static_cast<int64_t>(std::exp(log_length))};
    prompts.push_back(chosen->make(context, random));
  }
  return prompts;
}

}  // namespace kvlab
