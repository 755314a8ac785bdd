#include "benchmarks/ruler/sample_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

std::string input_of(const RulerRequest& request, const std::string& user_text) {
  return request.prompt_format ? request.prompt_format->render(user_text, "") : user_text;
}

std::string to_line(const RulerItem& item) {
  Json json = {{"index", item.index},
               {"user_text", item.user_text},
               {"prefix", item.answer_prefix},
               {"outputs", item.outputs},
               {"length", item.length}};
  if (item.token_position_answer) {
    json["token_position_answer"] = *item.token_position_answer;
  }
  return dump_json(json);
}

absl::StatusOr<RulerItem> from_line(const Json& json, const RulerRequest& request) {
  const std::string origin = "cached prompt";
  RulerItem item;
  KVLAB_ASSIGN_OR_RETURN(item.index, json_get<int64_t>(json, "index", origin));
  KVLAB_ASSIGN_OR_RETURN(item.user_text, json_get<std::string>(json, "user_text", origin));
  KVLAB_ASSIGN_OR_RETURN(item.answer_prefix, json_get<std::string>(json, "prefix", origin));
  KVLAB_ASSIGN_OR_RETURN(item.length, json_get<int64_t>(json, "length", origin));
  KVLAB_ASSIGN_OR_RETURN(const Json outputs, json_get<Json>(json, "outputs", origin));
  for (const Json& output : outputs) {
    if (!output.is_string()) {
      return data_loss("{}: an output is no string", origin);
    }
    item.outputs.push_back(output.get<std::string>());
  }
  if (json.contains("token_position_answer")) {
    KVLAB_ASSIGN_OR_RETURN(item.token_position_answer,
                           json_get<int64_t>(json, "token_position_answer", origin));
  }
  item.input = input_of(request, item.user_text);
  return item;
}

// The first `request.samples` prompts of the file; nothing when it is absent, short or damaged.
std::optional<std::vector<RulerItem>> read_cached(const std::filesystem::path& path,
                                                  const RulerRequest& request) {
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  const auto text = read_file(path);
  if (!text.ok()) {
    return std::nullopt;
  }
  const size_t newline = text->find('\n');
  if (newline == text->npos || text->substr(0, newline) != sha256_hex(text->substr(newline + 1))) {
    return std::nullopt;
  }
  std::vector<RulerItem> items;
  size_t begin = newline + 1;
  while (begin < text->size() && static_cast<int64_t>(items.size()) < request.samples) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    const auto json = parse_json(std::string_view(*text).substr(begin, end - begin), "cache");
    if (!json.ok()) {
      return std::nullopt;
    }
    auto item = from_line(*json, request);
    if (!item.ok()) {
      return std::nullopt;
    }
    items.push_back(*std::move(item));
    begin = end + 1;
  }
  if (static_cast<int64_t>(items.size()) < request.samples) {
    return std::nullopt;
  }
  return items;
}

}  // namespace

absl::StatusOr<std::vector<RulerItem>> cached_ruler(const RulerRequest& request,
                                                    const RulerSources& sources,
                                                    const std::string& sources_hash,
                                                    const Tokenizer& tokenizer) {
  std::string format = "base";
  if (request.prompt_format) {
    format =
        sha256_hex(request.prompt_format->before_user + "\x1f" + request.prompt_format->after_user);
  }
  const std::string identity = sha256_hex(
      fmt::format("{}|{}|{}|{}|{}|{}|{}", request.task->name, request.length, request.seed, format,
                  tokenizer.content_hash(), sources_hash, kRulerGeneratorVersion));
  const std::filesystem::path path =
      cache_dir() / "data" / "ruler" /
      fmt::format("{}-{}-{}.jsonl", request.task->name, request.length, identity.substr(0, 24));
  if (auto cached = read_cached(path, request)) {
    return *std::move(cached);
  }
  KVLAB_ASSIGN_OR_RETURN(std::vector<RulerItem> items, generate_ruler(request, sources, tokenizer));
  std::string body;
  for (const RulerItem& item : items) {
    body += to_line(item) + "\n";
  }
  (void)write_file(path, sha256_hex(body) + "\n" + body);
  return items;
}

}  // namespace kvlab
