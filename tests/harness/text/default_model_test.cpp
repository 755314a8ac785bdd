// The prepared default model against transformers' own conversion of the same GGUF file
// (tests/golden/make_default_model_hashes.py), and its config against the published one.
#include <gtest/gtest.h>

#include <cstring>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

TEST(DefaultModel, EveryTensorIsBitForBitTheOneTransformersMakes) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  const auto golden =
      read_json_file(std::filesystem::path(KVLAB_TEST_DIR) / "golden" / "default_model.json");
  ASSERT_TRUE(golden.ok()) << golden.status();
  const auto file = MappedFile::open(dir / "model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string_view bytes(reinterpret_cast<const char*>((*file)->bytes().data()),
                               (*file)->bytes().size());
  uint64_t header_size = 0;
  ASSERT_GT(bytes.size(), sizeof(header_size));
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  const auto header = parse_json(bytes.substr(sizeof(header_size), header_size), "header");
  ASSERT_TRUE(header.ok()) << header.status();
  const std::string_view data = bytes.substr(sizeof(header_size) + header_size);
  const Json& tensors = golden->at("tensors");
  ASSERT_EQ(tensors.size(), 272U);
  EXPECT_EQ(header->size(), tensors.size() + 1);  // and __metadata__
  for (const auto& [name, expected] : tensors.items()) {
    ASSERT_TRUE(header->contains(name)) << name;
    const Json& entry = header->at(name);
    EXPECT_EQ(entry.at("dtype"), "BF16") << name;
    EXPECT_EQ(entry.at("shape"), expected.at("shape")) << name;
    const auto begin = entry.at("data_offsets")[0].get<size_t>();
    const auto end = entry.at("data_offsets")[1].get<size_t>();
    EXPECT_EQ(sha256_hex(data.substr(begin, end - begin)), expected.at("sha256").get<std::string>())
        << name;
  }
}

TEST(DefaultModel, ItsConfigSaysWhatThePublishedOneSays) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  const auto made = read_json_file(dir / "config.json");
  const auto published =
      read_json_file(data / "model_configs" / "SmolLM2-135M-Instruct" / "config.json");
  ASSERT_TRUE(made.ok() && published.ok());
  for (const auto& [key, value] : made->items()) {
    ASSERT_TRUE(published->contains(key)) << key;
    EXPECT_EQ(value, published->at(key)) << key;
  }
  EXPECT_GE(made->size(), 20U);
}

}  // namespace
}  // namespace kvlab
