#include "reports/chart_renderer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "reports/escape.h"
#include "reports/render_charts_text.h"

extern char** environ;

namespace kvlab {
namespace {

// Runs a program, its output into `log`. Errors: it cannot start, or ends with anything but 0.
absl::Status run_program(std::vector<std::string> arguments, const std::filesystem::path& log) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return failed_precondition("{}: cannot start: {}", arguments[0], std::strerror(error));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return failed_precondition("{}: lost: {}", arguments[0], std::strerror(errno));
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return absl::OkStatus();
  }
  // The last line of what it said is the reason; the lines before are Python's trace.
  std::string reason = "it ended without a message";
  if (const auto said = read_file(log); said.ok()) {
    const size_t end = said->find_last_not_of("\n ");
    if (end != std::string::npos) {
      const size_t begin = said->rfind('\n', end);
      reason = said->substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
    }
  }
  return failed_precondition("{}", truncate_to_width(plain_line(reason), 300));
}

}  // namespace

std::filesystem::path default_chart_python() { return cache_dir() / "python" / "bin" / "python"; }

absl::Status render_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder,
                           const std::filesystem::path& python) {
  std::vector<std::string> arguments = {python.string(), "-c", kRenderChartsScript,
                                        folder.string()};
  for (const Chart& chart : charts) {
    KVLAB_RETURN_IF_ERROR(write_file(folder / (chart.name + ".vl.json"), dump_json(chart.spec, 1)));
    arguments.push_back(chart.name);
  }
  std::error_code ignored;
  if (!std::filesystem::exists(python, ignored)) {
    return failed_precondition("{} is missing; scripts/setup makes it", python.string());
  }
  const std::filesystem::path log = folder / "render.log";
  KVLAB_RETURN_IF_ERROR(run_program(std::move(arguments), log));
  std::filesystem::remove(log, ignored);
  return absl::OkStatus();
}

}  // namespace kvlab
