// Made-up prose with enough distinct words to build training prompts from.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/training/seeded_random.h"
#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {

// Twelve documents below `dir`, in the layout that load_training_corpus() reads.
inline absl::Status write_made_up_corpus(const std::filesystem::path& dir) {
  SeededRandom random(7);
  std::vector<std::string> words;
  for (int i = 0; i < 400; ++i) {
    words.push_back(random.from_alphabet("aeioubcdfglmnprst", random.between(4, 8)));
  }
  for (int d = 0; d < 12; ++d) {
    std::string text;
    for (int p = 0; p < 60; ++p) {
      for (int s = 0; s < 4; ++s) {
        text += "Every";
        for (int w = 0; w < 11; ++w) {
          text += " " + random.pick(words);
        }
        text += ". ";
      }
      text += "\n\n";
    }
    const std::string name = d % 4 == 0 ? "code/file" + std::to_string(d) + ".py.txt"
                                        : "prose/file" + std::to_string(d) + ".txt";
    KVLAB_RETURN_IF_ERROR(write_file(dir / name, text));
  }
  return absl::OkStatus();
}

}  // namespace kvlab
