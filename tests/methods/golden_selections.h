// kvlab's selections on a model against a golden file's.
#pragma once

#include <filesystem>
#include <string>

namespace kvlab {

// A golden selection may differ from ours where an entry that stayed and one that went have scores
// this close, relative to their size: float32 sums in another order can't tell them apart.
inline constexpr double kTie = 2e-5;

// Each of these prefills every prompt of its golden file once, in float32, makes the selections of
// all its cases in one batch and compares kept positions exactly, but for ties. The number of heads
// compared, and of those that differ by a tie, is printed.
void expect_kvpress_selections(const std::filesystem::path& model_dir, const std::string& model);
void expect_paper_selections(const std::filesystem::path& model_dir, const std::string& model);
void expect_laq_selections(const std::filesystem::path& model_dir, const std::string& model);
void expect_speckv_selections(const std::filesystem::path& model_dir, const std::string& model);

}  // namespace kvlab
