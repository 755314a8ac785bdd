#include "tests/support/browser.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

std::string text_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

std::optional<std::filesystem::path> find_browser() {
  const char* named = std::getenv("KVLAB_CHROMIUM");
  const std::filesystem::path path = named != nullptr ? named : "/usr/bin/chromium";
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
}

absl::StatusOr<std::unique_ptr<Browser>> Browser::start(const std::filesystem::path& program,
                                                        const std::filesystem::path& profile) {
  ::signal(SIGPIPE, SIG_IGN);  // a browser that dies is an error of the next call
  int commands[2], answers[2];
  if (::pipe2(commands, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) {
    return absl::InternalError("no pipe");
  }
  const std::string path = program.string();
  const std::string folder = "--user-data-dir=" + profile.string();
  const std::string log = (profile / "browser.log").string();
  const pid_t process = ::fork();
  if (process == 0) {
    ::setpgid(0, 0);
    // Above 4 first, so that neither copy overwrites the other's source.
    const int in = ::fcntl(commands[0], F_DUPFD, 10);
    const int out = ::fcntl(answers[1], F_DUPFD, 10);
    ::dup2(in, 3);
    ::dup2(out, 4);
    ::close(in);
    ::close(out);
    const int null = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    // Root has no sandbox; containers have a small /dev/shm.
    ::execl(path.c_str(), path.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
            "--disable-component-update", "--no-first-run", "--remote-debugging-pipe",
            "--force-color-profile=srgb", folder.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(commands[0]);
  ::close(answers[1]);
  std::unique_ptr<Browser> browser(new Browser());
  browser->process_ = process;
  browser->to_browser_ = commands[1];
  browser->from_browser_ = answers[0];
  KVLAB_ASSIGN_OR_RETURN(const Json target,
                         browser->call("Target.createTarget", {{"url", "about:blank"}}));
  KVLAB_ASSIGN_OR_RETURN(const Json attached,
                         browser->call("Target.attachToTarget",
                                       {{"targetId", target.at("targetId")}, {"flatten", true}}));
  browser->session_ = attached.at("sessionId").get<std::string>();
  for (const char* domain : {"Page", "Runtime", "Log", "Network"}) {
    KVLAB_RETURN_IF_ERROR(browser->call(std::string(domain) + ".enable", Json::object()).status());
  }
  return browser;
}

Browser::~Browser() {
  ::close(to_browser_);
  ::close(from_browser_);
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

absl::StatusOr<Json> Browser::read_message() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const size_t end = received_.find('\0');
    if (end != std::string::npos) {
      const std::string text = received_.substr(0, end);
      received_.erase(0, end + 1);
      return parse_json(text, "browser", {.refuse_duplicate_keys = false});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = from_browser_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
      return absl::DeadlineExceededError("the browser does not answer");
    }
    char buffer[1 << 16];
    const ssize_t n = ::read(from_browser_, buffer, sizeof buffer);
    if (n <= 0) {
      return absl::UnavailableError("the browser ended");
    }
    received_.append(buffer, static_cast<size_t>(n));
  }
}

void Browser::note_event(const Json& event) {
  const std::string method = text_of(event, "method");
  const Json& params = event.contains("params") ? event.at("params") : Json::object();
  if (method == "Page.loadEventFired") {
    loaded_ = true;
  } else if (method == "Runtime.exceptionThrown") {
    troubles_.errors.push_back(params.at("exceptionDetails").dump());
  } else if (method == "Runtime.consoleAPICalled") {
    const std::string type = text_of(params, "type");
    if (type == "error" || type == "warning" || type == "assert") {
      troubles_.errors.push_back(params.dump());
    }
  } else if (method == "Log.entryAdded") {
    troubles_.errors.push_back(params.at("entry").dump());
  } else if (method == "Network.requestWillBeSent") {
    const std::string url = text_of(params.at("request"), "url");
    if (url != page_url_ && !url.starts_with("data:")) {
      troubles_.requests.push_back(url);
    }
  }
}

absl::StatusOr<Json> Browser::call(const std::string& method, Json params) {
  Json message = {{"id", ++last_id_}, {"method", method}, {"params", std::move(params)}};
  if (!session_.empty()) {
    message["sessionId"] = session_;
  }
  const std::string text = message.dump() + '\0';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(to_browser_, text.data() + sent, text.size() - sent);
    if (n <= 0) {
      return absl::UnavailableError("the browser ended");
    }
    sent += static_cast<size_t>(n);
  }
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const Json answer, read_message());
    if (!answer.contains("id")) {
      note_event(answer);
    } else if (answer.at("id") == last_id_) {
      if (answer.contains("error")) {
        return absl::InternalError(method + ": " + answer.at("error").dump());
      }
      return answer.at("result");
    }
  }
}

absl::Status Browser::open(const std::filesystem::path& page) {
  page_url_ = "file://" + page.string();
  troubles_ = {};
  loaded_ = false;
  KVLAB_ASSIGN_OR_RETURN(const Json navigated, call("Page.navigate", {{"url", page_url_}}));
  if (navigated.contains("errorText")) {
    return absl::InternalError(page_url_ + ": " + text_of(navigated, "errorText"));
  }
  while (!loaded_) {
    KVLAB_ASSIGN_OR_RETURN(const Json event, read_message());
    note_event(event);
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> Browser::evaluate(const std::string& expression) {
  KVLAB_ASSIGN_OR_RETURN(const Json result, call("Runtime.evaluate", {{"expression", expression},
                                                                      {"returnByValue", true},
                                                                      {"awaitPromise", true}}));
  if (result.contains("exceptionDetails")) {
    return absl::InternalError(result.at("exceptionDetails").dump());
  }
  const Json& value = result.at("result");
  return value.contains("value") ? value.at("value") : Json();
}

absl::Status Browser::click(const std::string& selector) {
  KVLAB_ASSIGN_OR_RETURN(
      const Json at, evaluate("(() => { const e = document.querySelector(" + Json(selector).dump() +
                              "); e.scrollIntoView({block: 'center'}); const r = "
                              "e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + "
                              "r.height / 2}; })()"));
  for (const char* type : {"mousePressed", "mouseReleased"}) {
    KVLAB_RETURN_IF_ERROR(call("Input.dispatchMouseEvent", {{"type", type},
                                                            {"x", at.at("x")},
                                                            {"y", at.at("y")},
                                                            {"button", "left"},
                                                            {"clickCount", 1}})
                              .status());
  }
  return absl::OkStatus();
}

absl::Status Browser::screenshot(const std::filesystem::path& png, int width) {
  KVLAB_RETURN_IF_ERROR(
      call("Emulation.setDeviceMetricsOverride",
           {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}})
          .status());
  KVLAB_ASSIGN_OR_RETURN(const Json shot,
                         call("Page.captureScreenshot", {{"captureBeyondViewport", true}}));
  const std::string text = text_of(shot, "data");
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) {
    return absl::InternalError("the picture is not base64");
  }
  return write_file(png, bytes);
}

}  // namespace kvlab
