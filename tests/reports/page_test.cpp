// `kvlab report --html` in a headless browser: no error, nothing loaded, charts drawn, tables sort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/reports/hostile.h"
#include "tests/reports/synthetic_results.h"
#include "tests/results/fixtures.h"
#include "tests/support/browser.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One page and one browser for all tests.
class Page : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto program = find_browser();
    if (!program) {
      return;
    }
    folder_ = std::make_unique<TemporaryFolder>();
    // KVLAB_PAGE_FOLDER keeps the page and its pictures to look at.
    const char* keep = std::getenv("KVLAB_PAGE_FOLDER");
    dir_ = keep != nullptr ? std::filesystem::path(keep) : folder_->path();
    std::filesystem::remove(dir_ / "r.sqlite");
    const absl::Status written = write_synthetic_results(
        dir_ / "r.sqlite", {.samples = 22, .lengths = 3, .extra_name = std::string(kHostile)});
    ASSERT_TRUE(written.ok()) << written;
    const std::string command =
        fmt::format("'{0}' report '{1}/r.sqlite' --html '{1}/page.html' >'{1}/out.txt' 2>&1",
                    KVLAB_BINARY, dir_.string());
    ASSERT_EQ(std::system(command.c_str()), 0) << read_file(dir_ / "out.txt").value_or("");
    std::filesystem::create_directories(folder_->path() / "profile");
    auto browser = Browser::start(*program, folder_->path() / "profile");
    ASSERT_TRUE(browser.ok()) << browser.status()
                              << read_file(folder_->path() / "profile/browser.log").value_or("");
    browser_ = std::move(browser).value();
  }
  static void TearDownTestSuite() {
    browser_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!find_browser()) {
      GTEST_SKIP() << "needs Chromium: scripts/test installs it, KVLAB_CHROMIUM names another one";
    }
    ASSERT_NE(browser_, nullptr);
    const absl::Status opened = browser_->open(dir_ / "page.html");
    ASSERT_TRUE(opened.ok()) << opened;
  }
  static Json value(const std::string& expression) {
    const auto result = browser_->evaluate(expression);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(Json());
  }
  static bool charts_can_be_drawn() {
    return read_file(dir_ / "out.txt").value_or("").find("charts left out") == std::string::npos;
  }

  static std::unique_ptr<TemporaryFolder> folder_;
  static std::filesystem::path dir_;
  static std::unique_ptr<Browser> browser_;
};
std::unique_ptr<TemporaryFolder> Page::folder_;
std::filesystem::path Page::dir_;
std::unique_ptr<Browser> Page::browser_;

TEST_F(Page, HasNoErrorAndLoadsNothing) {
  EXPECT_THAT(browser_->troubles().errors, IsEmpty());
  EXPECT_THAT(browser_->troubles().requests, IsEmpty());
  // Nothing in it points anywhere either.
  EXPECT_EQ(value("document.querySelectorAll('link:not([href^=\"data:\"]), script[src], iframe, "
                  "object, embed, a[href^=\"http\"], img:not([src^=\"data:\"])').length"),
            0);
}

TEST_F(Page, ABrokenPageWouldBeNoticed) {
  ASSERT_TRUE(write_file(dir_ / "broken.html",
                         "<body><script>console.error('an error'); setTimeout(() => missing())"
                         "</script><img src='http://x.invalid/a.png'>")
                  .ok());
  ASSERT_TRUE(browser_->open(dir_ / "broken.html").ok());
  (void)value("new Promise(done => setTimeout(done, 100))");
  EXPECT_GE(browser_->troubles().errors.size(), 2U);
  EXPECT_THAT(browser_->troubles().requests, ElementsAre("http://x.invalid/a.png"));
}

TEST_F(Page, EveryKindOfChartIsDrawn) {
  if (!charts_can_be_drawn()) {
    GTEST_SKIP() << "needs vl-convert: scripts/setup installs it";
  }
  const Json kinds = value("[...document.querySelectorAll('h2')].map(h => h.textContent)");
  EXPECT_THAT(kinds.dump(),
              AllOf(HasSubstr("Score against budget"), HasSubstr("Score against length"),
                    HasSubstr("by depth and length"), HasSubstr("positions are kept"),
                    HasSubstr("Cost against quality")));
  EXPECT_THAT(value("document.body.textContent").dump(), ::testing::Not(HasSubstr("not drawn")));
  // Colours of each picture, painted at half its size on white.
  const Json pictures = value(R"js(Promise.all([...document.querySelectorAll("img.chart")].map(
      async (image) => {
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.width = image.naturalWidth / 2;
        canvas.height = image.naturalHeight / 2;
        const paint = canvas.getContext("2d");
        paint.drawImage(image, 0, 0, canvas.width, canvas.height);
        const colours = new Set(new Uint32Array(
            paint.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
        return [image.naturalWidth, image.naturalHeight, colours.size, image.clientWidth];
      })))js");
  ASSERT_GE(pictures.size(), 10U);
  for (const Json& picture : pictures) {
    EXPECT_GT(picture[0], 200) << pictures;
    EXPECT_GT(picture[1], 100) << pictures;
    EXPECT_GT(picture[2], 20) << pictures;
    EXPECT_GT(picture[3], 200) << pictures;
  }
  // For papers: a drawing of each beside the page.
  size_t specifications = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "page_charts")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".vl.json")) {
      ++specifications;
      const std::string stem = (dir_ / "page_charts" / name.substr(0, name.size() - 8)).string();
      EXPECT_TRUE(read_file(stem + ".svg").value_or("").starts_with("<svg")) << stem;
      EXPECT_TRUE(read_file(stem + ".pdf").value_or("").starts_with("%PDF")) << stem;
    }
  }
  EXPECT_EQ(specifications, pictures.size());
}

TEST_F(Page, TablesSortByAnyColumn) {
  const std::string column =
      "[...document.querySelector('table').tBodies[0].rows].map(r => "
      "Number(r.cells[2].dataset.value))";
  const auto is_sorted = [&](bool ascending) {
    auto values = value(column).get<std::vector<double>>();
    EXPECT_GT(values.size(), 10U);
    if (!ascending) {
      std::reverse(values.begin(), values.end());
    }
    return std::is_sorted(values.begin(), values.end());
  };
  const std::string head = "table thead th:nth-child(3)";
  EXPECT_FALSE(is_sorted(true) || is_sorted(false));
  ASSERT_TRUE(browser_->click(head).ok());
  EXPECT_TRUE(is_sorted(false));  // scores: the best first
  EXPECT_EQ(value("document.querySelector('" + head + "').getAttribute('aria-sort')"),
            "descending");
  ASSERT_TRUE(browser_->click(head).ok());
  EXPECT_TRUE(is_sorted(true));
  // By name, with the keyboard.
  (void)value(
      "document.querySelector('table thead th').dispatchEvent(new KeyboardEvent("
      "'keydown', {key: 'Enter'}))");
  const Json names = value(
      "[...document.querySelector('table').tBodies[0].rows].map(r => r.cells[0].textContent)");
  const auto is_before = [](const Json& a, const Json& b) {
    return a.get<std::string>() < b.get<std::string>();
  };
  EXPECT_TRUE(std::is_sorted(std::next(names.begin()), names.end(), is_before)) << names;
}

TEST_F(Page, HostileNamesStayText) {
  EXPECT_EQ(value("typeof window.hacked"), "undefined");
  EXPECT_EQ(value("document.scripts.length"), 1);
  EXPECT_THAT(value("document.body.textContent").get<std::string>(),
              HasSubstr("</script><script>window.hacked=1</script>"));
}

TEST_F(Page, FitsAPhone) {
  const absl::Status taken = browser_->screenshot(dir_ / "phone.png", 400);
  ASSERT_TRUE(taken.ok()) << taken;
  EXPECT_LE(value("document.documentElement.scrollWidth").get<int>(), 400);
  ASSERT_TRUE(browser_->screenshot(dir_ / "page.png", 1200).ok());
}

}  // namespace
}  // namespace kvlab
