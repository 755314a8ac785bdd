#include "methods/lookahead_kv/training/recipe.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/sweep/expand.h"
#include "harness/sweep/sweep_config.h"

namespace kvlab {
namespace {

std::string join_words(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
  }
  return text;
}

absl::Status refuse_unknown_keys(const Json& object, std::initializer_list<std::string_view> known,
                                 const std::string& origin) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return invalid_argument("{}: unknown key \"{}\"; known: {}", origin, key, join_words(known));
    }
  }
  return absl::OkStatus();
}

// The file, over what its "base" says; so a recipe that changes one number is a few lines.
absl::StatusOr<Json> read_with_base(const std::filesystem::path& path, int depth) {
  constexpr int kDeepest = 8;
  const std::string origin = path.string();
  KVLAB_ASSIGN_OR_RETURN(Json own, read_json_file(path, {.allow_comments = true}));
  KVLAB_RETURN_IF_ERROR(refuse_unknown_keys(
      own, {"comment", "base", "model", "adapter", "data", "training"}, origin));
  if (!own.contains("base")) {
    return own;
  }
  KVLAB_ASSIGN_OR_RETURN(const std::string base, json_get<std::string>(own, "base", origin));
  if (depth == kDeepest) {
    return invalid_argument("{}: \"base\" goes more than {} files deep; a circle?", origin,
                            kDeepest);
  }
  KVLAB_ASSIGN_OR_RETURN(Json whole, read_with_base(path.parent_path() / base, depth + 1));
  own.erase("base");
  whole.merge_patch(own);
  return whole;
}

absl::StatusOr<Json> section(const Json& file, const std::string& key, const std::string& origin) {
  const Json object = file.value(key, Json::object());
  if (!object.is_object()) {
    return invalid_argument("{}: \"{}\" is not an object", origin, key);
  }
  return object;
}

absl::StatusOr<std::vector<std::filesystem::path>> paths(const Json& object, const std::string& key,
                                                         const std::string& origin) {
  std::vector<std::filesystem::path> out;
  const Json list = object.value(key, Json::array());
  for (const Json& one : list) {
    if (!one.is_string()) {
      return invalid_argument("{}: \"{}\" is a list of paths", origin, key);
    }
    out.emplace_back(one.get<std::string>());
  }
  return out;
}

absl::Status read_adapter(const Json& object, const std::string& origin, TrainingRecipe& recipe) {
  KVLAB_RETURN_IF_ERROR(refuse_unknown_keys(
      object, {"num_tokens", "rank", "alpha", "targets", "init", "seed", "start_from"}, origin));
  LookaheadShape& shape = recipe.shape;
  KVLAB_ASSIGN_OR_RETURN(shape.num_tokens, json_get_or<int64_t>(object, "num_tokens", 32, origin));
  KVLAB_ASSIGN_OR_RETURN(shape.rank, json_get_or<int64_t>(object, "rank", 8, origin));
  KVLAB_ASSIGN_OR_RETURN(shape.alpha, json_get_or<double>(object, "alpha", 32, origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string targets,
                         json_get_or<std::string>(object, "targets", "all", origin));
  KVLAB_ASSIGN_OR_RETURN(shape.targets, parse_targets(targets));
  KVLAB_ASSIGN_OR_RETURN(recipe.token_init,
                         json_get_or<std::string>(object, "init", recipe.token_init, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.init_seed,
                         json_get_or<uint64_t>(object, "seed", recipe.init_seed, origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string start,
                         json_get_or<std::string>(object, "start_from", "", origin));
  recipe.start_from = start;
  if (shape.num_tokens < 1 || shape.rank < 0) {
    return invalid_argument("{}: needs num_tokens >= 1 and rank >= 0", origin);
  }
  if (recipe.token_init != "embedding" && recipe.token_init != "normal") {
    return invalid_argument("{}: \"init\" is \"{}\"; valid: embedding, normal", origin,
                            recipe.token_init);
  }
  return absl::OkStatus();
}

absl::Status read_data(const Json& object, const std::string& origin, TrainingRecipe& recipe) {
  KVLAB_RETURN_IF_ERROR(refuse_unknown_keys(
      object,
      {"text", "num_prompts", "min_tokens", "max_tokens", "seed", "weights", "instruction_files",
       "replies", "max_reply_tokens", "held_out", "benchmark_texts", "boilerplate_texts"},
      origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string text, json_get<std::string>(object, "text", origin));
  recipe.text_dir = text;
  KVLAB_ASSIGN_OR_RETURN(recipe.mix, TrainingMix::parse(object, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.instruction_files, paths(object, "instruction_files", origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.benchmark_texts, paths(object, "benchmark_texts", origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.boilerplate_texts, paths(object, "boilerplate_texts", origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string replies,
                         json_get_or<std::string>(object, "replies", "own", origin));
  if (replies == "given") {
    recipe.replies = Replies::kGiven;
  } else if (replies == "given_or_own") {
    recipe.replies = Replies::kGivenOrOwn;
  } else if (replies != "own") {
    return invalid_argument("{}: \"replies\" is \"{}\"; valid: own, given, given_or_own", origin,
                            replies);
  }
  KVLAB_ASSIGN_OR_RETURN(
      recipe.max_reply_tokens,
      json_get_or<int64_t>(object, "max_reply_tokens", recipe.max_reply_tokens, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.held_out,
                         json_get_or<int64_t>(object, "held_out", recipe.held_out, origin));
  if (recipe.max_reply_tokens < 1 || recipe.held_out < 0) {
    return invalid_argument("{}: needs max_reply_tokens >= 1 and held_out >= 0", origin);
  }
  return absl::OkStatus();
}

absl::Status read_training(const Json& object, const std::string& origin, TrainingRecipe& recipe) {
  KVLAB_RETURN_IF_ERROR(
      refuse_unknown_keys(object,
                          {"learning_rate", "batch", "passes", "warmup_steps", "clip", "order_seed",
                           "evaluate_every", "checkpoint_every", "recall_budgets"},
                          origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.learning_rate, json_get_or<double>(object, "learning_rate",
                                                                   recipe.learning_rate, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.batch, json_get_or<int64_t>(object, "batch", recipe.batch, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.passes,
                         json_get_or<double>(object, "passes", recipe.passes, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.warmup_steps,
                         json_get_or<int64_t>(object, "warmup_steps", recipe.warmup_steps, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.clip, json_get_or<double>(object, "clip", recipe.clip, origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.order_seed,
                         json_get_or<uint64_t>(object, "order_seed", recipe.order_seed, origin));
  KVLAB_ASSIGN_OR_RETURN(
      recipe.evaluate_every,
      json_get_or<int64_t>(object, "evaluate_every", recipe.evaluate_every, origin));
  KVLAB_ASSIGN_OR_RETURN(
      recipe.checkpoint_every,
      json_get_or<int64_t>(object, "checkpoint_every", recipe.checkpoint_every, origin));
  if (object.contains("recall_budgets")) {
    recipe.recall_budgets = object.at("recall_budgets").get<std::vector<int64_t>>();
  }
  if (recipe.learning_rate <= 0 || recipe.batch < 1 || recipe.passes <= 0 || recipe.clip <= 0 ||
      recipe.evaluate_every < 1 || recipe.checkpoint_every < 1) {
    return invalid_argument(
        "{}: learning_rate, batch, passes, clip, evaluate_every and checkpoint_every are above 0",
        origin);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingRecipe> load_training_recipe(const std::filesystem::path& path) {
  const std::string origin = path.string();
  KVLAB_ASSIGN_OR_RETURN(const Json written, read_with_base(path, /*depth=*/0));
  KVLAB_ASSIGN_OR_RETURN(const Json file, expand_variables(written, origin));
  TrainingRecipe recipe;
  recipe.path = path;
  recipe.source = written;
  recipe.hash = sha256_hex(dump_json(written));
  KVLAB_ASSIGN_OR_RETURN(const std::string model, json_get<std::string>(file, "model", origin));
  KVLAB_ASSIGN_OR_RETURN(recipe.model_dir, find_model_dir(model));
  KVLAB_ASSIGN_OR_RETURN(const Json adapter, section(file, "adapter", origin));
  KVLAB_RETURN_IF_ERROR(read_adapter(adapter, origin + ", adapter", recipe));
  KVLAB_ASSIGN_OR_RETURN(const Json data, section(file, "data", origin));
  KVLAB_RETURN_IF_ERROR(read_data(data, origin + ", data", recipe));
  KVLAB_ASSIGN_OR_RETURN(const Json training, section(file, "training", origin));
  KVLAB_RETURN_IF_ERROR(read_training(training, origin + ", training", recipe));
  return recipe;
}

}  // namespace kvlab
