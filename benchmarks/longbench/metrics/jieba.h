// Chinese word segmentation that cuts exactly as the Python package jieba 0.42.1 does with its
// default dictionary (jieba.cut(text), HMM on): a word lattice over the dictionary, the most
// probable path through it, and a hidden Markov model for runs of single characters.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/longbench/metrics/jieba_hmm.h"

namespace kvlab {

// Immutable after load, safe to share between threads.
class Jieba final {
 public:
  // Reads dict.txt and hmm.tsv in `dir` (scripts/fetch_jieba.py writes both). Errors name the file
  // and line, or say how to make the files.
  static absl::StatusOr<std::shared_ptr<const Jieba>> load(const std::filesystem::path& dir);

  // The data below cache_dir(), loaded at the first call; about half a second.
  static absl::StatusOr<const Jieba*> shared();

  ~Jieba();

  // The words of `text`, in order, covering all of it. They point into `text`.
  std::vector<std::u32string_view> cut(std::u32string_view text) const;

 private:
  class Dictionary;

  Jieba(std::unique_ptr<const Dictionary> dictionary, JiebaHmm hmm);

  void cut_block(std::u32string_view block, std::vector<std::u32string_view>& words) const;
  void cut_singles(std::u32string_view run, std::vector<std::u32string_view>& words) const;

  std::unique_ptr<const Dictionary> dictionary_;
  JiebaHmm hmm_;
};

}  // namespace kvlab
