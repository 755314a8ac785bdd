// Foreign test data that is not part of the project: the folder in KVLAB_SHARED_DATA, or
// ../shared/data beside the checkout.
#pragma once

#include <filesystem>
#include <optional>

namespace kvlab {

// The folder, if it is there.
std::optional<std::filesystem::path> shared_data_dir();

// The prepared default model below KVLAB_CACHE, if it is there.
std::optional<std::filesystem::path> default_model_dir();

}  // namespace kvlab

// Declares `const std::filesystem::path dir`, the shared data folder, or skips the test.
#define KVLAB_SHARED_DATA_OR_SKIP(dir)                                                   \
  if (!::kvlab::shared_data_dir()) {                                                     \
    GTEST_SKIP() << "needs the shared data folder: set KVLAB_SHARED_DATA, or put it at " \
                    "../shared/data";                                                    \
  }                                                                                      \
  const std::filesystem::path dir = *::kvlab::shared_data_dir()

// Declares `const std::filesystem::path dir`, the default model's folder, or skips the test.
#define KVLAB_DEFAULT_MODEL_OR_SKIP(dir)                          \
  if (!::kvlab::default_model_dir()) {                            \
    GTEST_SKIP() << "needs the default model: run scripts/setup"; \
  }                                                               \
  const std::filesystem::path dir = *::kvlab::default_model_dir()
