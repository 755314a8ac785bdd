// A budget as a sweep file writes it: a number of entries, or a share of the prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvlab {

// "12.5%" for 0.125.
std::string share_text(double share);

struct BudgetSpec {
  int64_t tokens = 0;           // entries per layer and KV head; 0 when `share` is set
  std::optional<double> share;  // of the prompt's length, in (0, 1]

  // "128", or "12.5%": the text that keys and tables use.
  std::string text() const;

  // Entries for a prompt: a share is rounded to the nearest entry, at least one.
  int64_t resolve(int64_t prompt_len) const;

  bool operator==(const BudgetSpec&) const = default;
};

}  // namespace kvlab
