#include "harness/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/base/say.h"

namespace kvlab {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(200);
constexpr auto kPlainInterval = std::chrono::seconds(20);

size_t terminal_width(std::FILE* stream) {
  struct winsize size {};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20) {
    return size.ws_col;
  }
  return 80;
}

}  // namespace

std::string readable_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600) {
    return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
  }
  if (whole >= 60) {
    return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  }
  return fmt::format("{}s", whole);
}

Progress::Progress(std::string_view title, double total, double done, std::FILE* stream)
    : title_(title),
      total_(total),
      done_before_(done),
      done_(done),
      stream_(stream),
      terminal_(::isatty(::fileno(stream)) == 1 && std::getenv("CI") == nullptr),
      quiet_(std::getenv("KVLAB_QUIET") != nullptr),
      start_(std::chrono::steady_clock::now()) {
  show(/*force=*/true);
}

Progress::~Progress() {
  if (!finished_ && terminal_ && !quiet_) {
    say(stream_, "\n");
  }
}

void Progress::advance(double units, std::string_view note) {
  done_ += units;
  note_ = note;
  show(/*force=*/false);
}

void Progress::show(bool force) {
  if (quiet_) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!force &&
      now - last_shown_ < (terminal_ ? std::chrono::steady_clock::duration(kTerminalInterval)
                                     : std::chrono::steady_clock::duration(kPlainInterval))) {
    return;
  }
  last_shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double fraction = total_ > 0 ? std::min(1.0, done_ / total_) : 1.0;
  std::string line = fmt::format("{} {:3.0f} %", title_, 100 * fraction);
  const double worked = done_ - done_before_;
  if (worked > 0 && done_ < total_) {
    line += fmt::format(", {} left", readable_duration(elapsed / worked * (total_ - done_)));
  }
  if (!note_.empty()) {
    line += ", " + note_;
  }
  if (terminal_) {
    line.resize(std::min(line.size(), terminal_width(stream_) - 1));
    say(stream_, "\r{}\x1b[K", line);
  } else {
    say(stream_, "{}\n", line);
  }
  std::fflush(stream_);
}

void Progress::finish() {
  if (finished_) {
    return;
  }
  finished_ = true;
  if (quiet_) {
    return;
  }
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  say(stream_, "{}{} done in {}\n", terminal_ ? "\r\x1b[K" : "", title_,
      readable_duration(elapsed));
}

void Progress::message(std::string_view text) {
  say(stream_, "{}{}\n", terminal_ && !quiet_ ? "\r\x1b[K" : "", text);
  show(/*force=*/true);
}

}  // namespace kvlab
