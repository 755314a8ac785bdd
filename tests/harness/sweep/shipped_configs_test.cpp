// The sweep files in configs/ are valid, those for models that are not at hand included.
#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/model/safetensors.h"
#include "harness/sweep/sweep_config.h"
#include "methods/registry.h"

namespace kvlab {
namespace {

std::vector<std::filesystem::path> shipped_sweeps() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path configs = std::filesystem::path(KVLAB_SOURCE_DIR) / "configs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    const std::string folder = entry.path().lexically_relative(configs).begin()->string();
    if (entry.path().extension() == ".json" && folder != "train" && folder != "bench") {
      files.push_back(entry.path());
    }
  }
  return files;
}

TEST(ShippedConfigs, LoadAndNameKnownMethodsAndParameters) {
  const std::filesystem::path cache =
      std::filesystem::path(::testing::TempDir()) / "kvlab_shipped_configs";
  ::setenv("KVLAB_CACHE", cache.c_str(), 1);
  ::setenv("KVLAB_ADAPTERS", (cache / "adapters").c_str(), 1);
  ::setenv("KVLAB_RUNS", (cache / "runs").c_str(), 1);
  // Adapters that are not at hand: making a policy reads no more than the header.
  const auto pretend_adapter = [](const std::filesystem::path& path) {
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(write_safetensors(path, {}, {{"num_lookahead_tokens", "32"}}).ok());
  };
  pretend_adapter(cache / "adapters" / "smollm2-135m-instruct.safetensors");
  const auto files = shipped_sweeps();
  EXPECT_GE(files.size(), 5U);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.string());
    const auto json = read_json_file(file, {.allow_comments = true});
    ASSERT_TRUE(json.ok()) << json.status();
    const Json& model = json->at("model");
    for (const Json& name : model.is_array() ? model : Json::array({model})) {
      ASSERT_TRUE(
          write_file(cache / "models" / name.get<std::string>() / "config.json", "{}").ok());
    }
    const auto config = load_sweep_config(file);
    ASSERT_TRUE(config.ok()) << config.status();
    for (const MethodSpec& method : config->methods) {
      if (method.params.contains("adapter")) {
        pretend_adapter(method.params.at("adapter").get<std::string>());
      }
      const auto policy = make_policy(method.name, method.params);
      EXPECT_TRUE(policy.ok()) << policy.status();
    }
  }
}

}  // namespace
}  // namespace kvlab
