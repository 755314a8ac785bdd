// Any bytes as text for one of the small golden tokenizers, which the first byte picks.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/json.h"
#include "harness/text/tokenizer_json.h"
#include "harness/text/utf8.h"

namespace {

struct Case {
  std::shared_ptr<const kvlab::Tokenizer> tokenizer;
  bool keeps_text;  // bytes in, the same bytes out
};

std::vector<Case> load_cases() {
  const auto golden = kvlab::read_json_file(KVLAB_TEST_DIR "/golden/tokens/components.json");
  KVLAB_CHECK(golden.ok());
  std::vector<Case> cases;
  for (const kvlab::Json& entry : golden->at("cases")) {
    kvlab::Json file = entry.at("parts");
    file["model"] = golden->at("models").at(entry.at("model").get<std::string>());
    file["model"].update(entry.at("model_patch"));
    auto tokenizer = kvlab::tokenizer_from_json(file.dump(), "golden");
    KVLAB_CHECK(tokenizer.ok());
    const auto name = entry.at("name").get<std::string>();
    cases.push_back({*std::move(tokenizer), name == "byte level" || name == "no words"});
  }
  return cases;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Case> cases = load_cases();
  if (size == 0) {
    return 0;
  }
  const Case& picked = cases[data[0] % cases.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<int32_t> ids = picked.tokenizer->encode(text, false);
  KVLAB_CHECK(picked.tokenizer->count(text) == static_cast<int64_t>(ids.size()));
  KVLAB_CHECK(std::all_of(ids.begin(), ids.end(), [&](int32_t id) {
    return id >= 0 && id < picked.tokenizer->vocab_size();
  }));
  const std::string decoded = picked.tokenizer->decode(ids, false);
  KVLAB_CHECK(kvlab::is_valid_utf8(decoded));
  KVLAB_CHECK(!picked.keeps_text || decoded == kvlab::to_valid_utf8(text));
  return 0;
}
