#include "harness/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/model/weight_files.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

std::string file_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>((header.size() >> (8 * i)) & 0xff));
  }
  return bytes + header + data;
}

absl::StatusOr<SafetensorsHeader> parse(const std::string& bytes) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes.data(), bytes.size())), "f");
}

std::string error_of(const std::string& header, const std::string& data) {
  const auto parsed = parse(file_bytes(header, data));
  return parsed.ok() ? "no error" : std::string(parsed.status().message());
}

std::filesystem::path new_dir(const std::string& name) {
  const auto dir = std::filesystem::path(testing::TempDir()) / ("kvlab_safetensors_" + name);
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

TEST(Safetensors, ReadsShapesTypesOffsetsAndMetadata) {
  const auto parsed = parse(file_bytes(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("empty":{"dtype":"I64","shape":[0,5],"data_offsets":[20,20]}})",
      std::string(20, 'x')));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  EXPECT_EQ(parsed->tensors.size(), 3U);
  const SafetensorsEntry& b = parsed->tensors.at("b");
  EXPECT_EQ(b.type, StoredType::kBFloat16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.end - b.begin, 12U);
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const auto path = new_dir("write") / "t.safetensors";
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> b = {7, 8};
  const std::vector<SafetensorsTensor> tensors = {
      {"a", StoredType::kFloat32, {2, 3}, std::as_bytes(std::span(a))},
      {"b \"quoted\"", StoredType::kInt32, {2}, std::as_bytes(std::span(b))}};
  ASSERT_TRUE(write_safetensors(path, tensors, {{"key", "value"}}).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->header().metadata.at("key"), "value");
  const SafetensorsEntry& entry = (*file)->header().tensors.at("a");
  EXPECT_EQ(entry.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp((*file)->bytes(entry).data(), a.data(), sizeof(float) * a.size()), 0);
  EXPECT_EQ(entry.begin % 8, 0U);
  const SafetensorsEntry& quoted = (*file)->header().tensors.at("b \"quoted\"");
  EXPECT_EQ(std::memcmp((*file)->bytes(quoted).data(), b.data(), 8), 0);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string whole =
      file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_TRUE(parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(parse(whole + "x").ok());
}

TEST(Safetensors, LyingHeadersAreRefusedWithTheReason) {
  const std::string data(8, 'x');
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", data),
              HasSubstr("need 12 bytes"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", data),
              HasSubstr("truncated"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", data),
              HasSubstr("ascending"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", data),
              HasSubstr("not a size"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", data),
              HasSubstr("not a size"));
  EXPECT_THAT(
      error_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
               data),
      HasSubstr("larger than any file"));
  EXPECT_THAT(
      error_of(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})",
               data),
      HasSubstr("not a size"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                       data),
              HasSubstr("overlap"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", data),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", data),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}})", data),
              HasSubstr("unknown dtype 'Q9'"));
  EXPECT_THAT(error_of(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", data), HasSubstr("'dtype'"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", data),
              HasSubstr("'shape'"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2]}})", data), HasSubstr("'data_offsets'"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", data),
              HasSubstr("unknown header field 'x'"));
  EXPECT_THAT(error_of(R"({"a":7})", data), HasSubstr("not an object"));
  EXPECT_THAT(error_of(R"([1,2])", data), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":1}})", ""), HasSubstr("not a string"));
  EXPECT_THAT(error_of(R"({"a":{)", data), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       data),
              HasSubstr("twice"));
}

TEST(Safetensors, EightBitFloatsAreRefusedByName) {
  const std::string error =
      error_of(R"({"w":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", "12345678");
  EXPECT_THAT(error, HasSubstr("quantised (F8_E4M3)"));
  EXPECT_THAT(error, HasSubstr("'w'"));
}

TEST(Safetensors, AHugeHeaderLengthIsAnErrorBeforeAnythingIsRead) {
  EXPECT_FALSE(parse(std::string(16, '\xff')).ok());
  std::string bytes(16, '\0');
  bytes[3] = 0x7f;
  EXPECT_THAT(std::string(parse(bytes).status().message()), HasSubstr("header"));
}

TEST(WeightFiles, FollowsTheIndexToEachShard) {
  const auto dir = new_dir("shards");
  const std::vector<float> value = {1};
  for (const char* name : {"x", "y"}) {
    const std::vector<SafetensorsTensor> tensors = {
        {name, StoredType::kFloat32, {1}, std::as_bytes(std::span(value))}};
    ASSERT_TRUE(write_safetensors(dir / (std::string(name) + ".safetensors"), tensors, {}).ok());
  }
  const auto index = dir / "model.safetensors.index.json";
  ASSERT_TRUE(
      write_file(index, R"({"weight_map":{"x":"x.safetensors","y":"y.safetensors"}})").ok());
  const auto weights = WeightFiles::open(dir);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_NE(weights->find("x"), nullptr);
  EXPECT_EQ(weights->find("y")->file->path(), dir / "y.safetensors");
  EXPECT_EQ(weights->find("z"), nullptr);

  ASSERT_TRUE(write_file(index, R"({"weight_map":{"x":"y.safetensors"}})").ok());
  EXPECT_THAT(std::string(WeightFiles::open(dir).status().message()), HasSubstr("'x' is not in"));
  ASSERT_TRUE(write_file(index, R"({"weight_map":{"x":"../x.safetensors"}})").ok());
  EXPECT_THAT(std::string(WeightFiles::open(dir).status().message()), HasSubstr("not a file name"));
  ASSERT_TRUE(write_file(index, R"({"weight_map":{"x":"gone.safetensors"}})").ok());
  EXPECT_THAT(std::string(WeightFiles::open(dir).status().message()),
              HasSubstr("gone.safetensors"));
}

TEST(WeightFiles, AFolderWithoutWeightsSaysWhatItLooksFor) {
  EXPECT_THAT(std::string(WeightFiles::open(new_dir("none")).status().message()),
              HasSubstr("model.safetensors.index.json"));
}

}  // namespace
}  // namespace kvlab
