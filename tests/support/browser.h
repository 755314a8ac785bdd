// Headless Chromium for tests of HTML pages, driven through its debugging pipe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// The browser in KVLAB_CHROMIUM, or Debian's /usr/bin/chromium, if it is there.
std::optional<std::filesystem::path> find_browser();

// What a page did that a reader would not want.
struct PageTroubles {
  std::vector<std::string> errors;    // console errors, exceptions, refused resources
  std::vector<std::string> requests;  // addresses asked for, other than the page and data: URLs
};

// One browser process with one tab. Every call waits for its answer, for a minute at most.
class Browser final {
 public:
  // `profile`: an empty folder for the browser's own files.
  static absl::StatusOr<std::unique_ptr<Browser>> start(const std::filesystem::path& program,
                                                        const std::filesystem::path& profile);
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser();

  // Loads a file and forgets the troubles of the page before.
  absl::Status open(const std::filesystem::path& page);
  // The value of a JavaScript expression; promises are awaited. Errors: it throws.
  absl::StatusOr<Json> evaluate(const std::string& expression);
  // A mouse click in the middle of the first element that the CSS selector finds.
  absl::Status click(const std::string& selector);
  // A picture of the whole page, as PNG.
  absl::Status screenshot(const std::filesystem::path& png, int width);

  const PageTroubles& troubles() const { return troubles_; }

 private:
  Browser() = default;
  absl::StatusOr<Json> call(const std::string& method, Json params);
  absl::StatusOr<Json> read_message();
  void note_event(const Json& event);

  pid_t process_ = -1;
  int to_browser_ = -1, from_browser_ = -1;
  std::string received_;
  std::string session_;
  std::string page_url_;
  int64_t last_id_ = 0;
  bool loaded_ = false;
  PageTroubles troubles_;
};

}  // namespace kvlab
