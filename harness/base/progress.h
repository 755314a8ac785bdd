// Progress of long work: one line that rewrites itself on a terminal, a plain line now and then
// elsewhere, nothing where KVLAB_QUIET is set. Shows the share done and the time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kvlab {

class Progress final {
 public:
  // `total` units of work, of which `done` were finished before. `stream` is stderr, usually.
  Progress(std::string_view title, double total, double done, std::FILE* stream);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // Adds finished work; `note` says what it was ("vt 4096 #3").
  void advance(double units, std::string_view note);

  // Ends the line and prints the total time.
  void finish();

  // A message that should stay readable, such as a failed sample.
  void message(std::string_view text);

 private:
  void show(bool force);

  std::string title_;
  std::string note_;
  double total_;
  double done_before_;
  double done_;
  std::FILE* stream_;
  bool terminal_;
  bool quiet_;
  bool finished_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_shown_;
};

// "1h 02m", "3m 20s", "12s".
std::string readable_duration(double seconds);

}  // namespace kvlab
