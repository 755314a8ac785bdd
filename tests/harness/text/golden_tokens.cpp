#include "tests/harness/text/golden_tokens.h"

#include <fmt/format.h>

#include "harness/base/sha256.h"

namespace kvlab {

Json read_golden_tokens(const std::string& name) {
  auto file = read_json_file(std::filesystem::path(KVLAB_TEST_DIR) / "golden" / "tokens" / name);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : Json::object();
}

void append_strings(const Json& value, std::vector<std::string>& out) {
  if (value.is_string()) {
    out.push_back(value.get<std::string>());
  } else if (value.is_structured()) {
    for (const Json& item : value) {
      append_strings(item, out);
    }
  }
}

Json digest(const Tokenizer& tokenizer, const std::vector<std::string>& strings, bool special) {
  size_t tokens = 0;
  std::string all_ids;
  std::string all_text;
  for (const std::string& text : strings) {
    const std::vector<int32_t> ids = tokenizer.encode(text, special);
    tokens += ids.size();
    all_ids += fmt::format("{}\n", fmt::join(ids, ","));
    all_text += tokenizer.decode(ids, true) + "\n";
  }
  return {{"tokens", tokens},
          {"ids_sha256", sha256_hex(all_ids)},
          {"text_sha256", sha256_hex(all_text)}};
}

}  // namespace kvlab
