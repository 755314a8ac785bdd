// absl::Status with formatted messages, and the two macros that pass errors on.
// A message says where (file, key, sample), what is wrong, and what would be valid.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "harness/base/strings.h"

namespace kvlab {

template <typename... Args>
absl::Status invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
absl::Status not_found(fmt::format_string<Args...> format, Args&&... args) {
  return absl::NotFoundError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
absl::Status data_loss(fmt::format_string<Args...> format, Args&&... args) {
  return absl::DataLossError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
absl::Status unimplemented(fmt::format_string<Args...> format, Args&&... args) {
  return absl::UnimplementedError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
absl::Status failed_precondition(fmt::format_string<Args...> format, Args&&... args) {
  return absl::FailedPreconditionError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
absl::Status unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return absl::UnavailableError(to_absl(fmt::format(format, std::forward<Args>(args)...)));
}

// The message alone, without Abseil's code prefix, as users see it.
inline std::string message_of(const absl::Status& status) {
  return std::string(from_absl(status.message()));
}

// `status` with "context: " in front of its message; OK stays OK.
inline absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) {
    return status;
  }
  return absl::Status(status.code(), to_absl(fmt::format("{}: {}", context, message_of(status))));
}

}  // namespace kvlab

#define KVLAB_CONCAT_INNER(a, b) a##b
#define KVLAB_CONCAT(a, b) KVLAB_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression`, an absl::Status, is an error.
#define KVLAB_RETURN_IF_ERROR(expression)                       \
  do {                                                          \
    if (auto kvlab_status = (expression); !kvlab_status.ok()) { \
      return kvlab_status;                                      \
    }                                                           \
  } while (false)

// KVLAB_ASSIGN_OR_RETURN(auto value, function_returning_status_or());
#define KVLAB_ASSIGN_OR_RETURN(lhs, expression) \
  KVLAB_ASSIGN_OR_RETURN_IMPL(KVLAB_CONCAT(kvlab_status_or_, __LINE__), lhs, expression)
#define KVLAB_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expression) \
  auto tmp = (expression);                                \
  if (!tmp.ok()) {                                        \
    return tmp.status();                                  \
  }                                                       \
  lhs = std::move(tmp).value()
