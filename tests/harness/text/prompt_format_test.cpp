// Prompt formats rendered by scripts/render_prompt_format.py against transformers'
// apply_chat_template (tests/golden/make_prompt_formats.py).
#include "harness/text/prompt_format.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

class PromptFormatTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) /
           fmt::format("prompt_format_{}_{}", getpid(),
                       testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(dir_ / name, text).ok());
  }

  // Runs the script on dir_; its exit code. What it says goes to out.txt.
  int render(const std::string& arguments) const {
    const auto python = cache_dir() / "python" / "bin" / "python";
    return std::system(fmt::format("'{}' '{}/scripts/render_prompt_format.py' '{}' {} > '{}' 2>&1",
                                   python.string(), KVLAB_SOURCE_DIR, dir_.string(), arguments,
                                   (dir_ / "out.txt").string())
                           .c_str());
  }
  std::string said() const { return read_file(dir_ / "out.txt").value_or(""); }

  static bool has_python() {
    return std::filesystem::exists(cache_dir() / "python" / "bin" / "python");
  }

  std::filesystem::path dir_;
};

#define KVLAB_PYTHON_OR_SKIP()                                      \
  if (!has_python()) {                                              \
    GTEST_SKIP() << "needs the set-up's Python: run scripts/setup"; \
  }

TEST_F(PromptFormatTest, EveryTemplateRendersAsTransformersDoes) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  KVLAB_PYTHON_OR_SKIP();
  const auto golden =
      read_json_file(std::filesystem::path(KVLAB_TEST_DIR) / "golden" / "prompts.json");
  ASSERT_TRUE(golden.ok()) << golden.status();
  const auto texts = golden->at("user_texts").get<std::vector<std::string>>();
  ASSERT_GE(golden->at("templates").size(), 10U);
  write("special_tokens_map.json", R"({"bos_token": "<BOS>", "eos_token": {"content": "<EOS>"}})");
  for (const auto& [name, expected] : golden->at("templates").items()) {
    SCOPED_TRACE(name);
    std::string arguments;
    std::filesystem::remove(dir_ / "tokenizer_config.json");
    if (name.ends_with(".jinja")) {
      arguments = fmt::format("--template '{}'", (data / name).string());
    } else {
      const auto config = read_json_file(data / name);
      ASSERT_TRUE(config.ok()) << config.status();
      write("tokenizer_config.json", Json{{"chat_template", config->at("chat_template")}}.dump());
    }
    ASSERT_EQ(render(arguments), 0) << said();
    const auto format = PromptFormat::load(dir_);
    ASSERT_TRUE(format.ok()) << format.status();
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string prompt = format->render(texts[i], "");
      EXPECT_EQ(prompt.size(), expected[i].at("bytes").get<size_t>()) << prompt;
      EXPECT_EQ(sha256_hex(prompt), expected[i].at("sha256").get<std::string>()) << prompt;
      EXPECT_EQ(format->render(texts[i], "So:"), prompt + "So:");
    }
  }
}

TEST_F(PromptFormatTest, TemplatesThatCannotBeSplitAreRefusedWithTheReason) {
  KVLAB_PYTHON_OR_SKIP();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ messages[0].content }}{{ messages[0].content }}", "appears 2 times"},
      {"nothing", "does not appear"},
      {"{{ messages[0].content | upper }}", "does not appear"},
      {"{{ messages[0].content.lstrip() }}", "in another way than trimming both ends"},
      {"{{ messages[0].content.replace('  ', ' ') }}", "white space"},
      {"{% for m in messages %}{{ m.content }}", "chat_template.jinja, line"},
      {"{{ raise_exception('only tools') }}", "only tools"},
      {"{{ bos_token }}{{ messages[0].content }}", "uses bos_token"},
  };
  for (const auto& [text, reason] : cases) {
    write("chat_template.jinja", text);
    EXPECT_NE(render(""), 0) << text;
    EXPECT_THAT(said(), HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "prompt_format.json")) << text;
  }
}

TEST_F(PromptFormatTest, ALaterTemplateMakesTheOldFormatAnError) {
  KVLAB_PYTHON_OR_SKIP();
  write("chat_template.jinja", "<u>{{ messages[0].content }}</u>\r\n");
  ASSERT_EQ(render(""), 0) << said();
  EXPECT_TRUE(PromptFormat::load(dir_).ok()) << PromptFormat::load(dir_).status();
  write("chat_template.jinja", "<v>{{ messages[0].content }}</v>");
  const auto format = PromptFormat::load(dir_);
  ASSERT_FALSE(format.ok());
  EXPECT_THAT(message_of(format.status()), HasSubstr("another chat template"));
  EXPECT_THAT(message_of(format.status()), HasSubstr("scripts/render_prompt_format.py"));
}

TEST_F(PromptFormatTest, WithoutAFormatTheErrorSaysWhichCommandMakesIt) {
  const auto format = PromptFormat::load(dir_);
  ASSERT_FALSE(format.ok());
  EXPECT_THAT(message_of(format.status()),
              HasSubstr("python scripts/render_prompt_format.py " + dir_.string()));
}

TEST_F(PromptFormatTest, AFormatWrittenByHandIsTaken) {
  write("prompt_format.json", R"({"before_user": "Q: ", "after_user": "\nA:"})");
  const auto format = PromptFormat::load(dir_);
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(format->render(" x ", " y"), "Q:  x \nA: y");
  write("prompt_format.json", R"({"before_user": 7})");
  EXPECT_THAT(message_of(PromptFormat::load(dir_).status()), HasSubstr("\"before_user\""));
}

TEST_F(PromptFormatTest, TrimmingTakesWhatPythonTakes) {
  PromptFormat format;
  format.before_user = "[";
  format.after_user = "]";
  format.trims_user_text = true;
  EXPECT_EQ(format.render(" \t\n\x1c\u00a0\u3000x y\u2028 ", ""), "[x y]");
  EXPECT_EQ(format.render(" \n ", ""), "[]");
  EXPECT_EQ(format.render("\u200b", ""), "[\u200b]");  // no white space to Python
}

TEST_F(PromptFormatTest, TheDefaultModelHasItsFormat) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  const auto format = PromptFormat::load(dir);
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(format->after_user, "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THAT(format->before_user, HasSubstr(format->system_text + "<|im_end|>"));
  EXPECT_FALSE(format->system_text.empty());
}

}  // namespace
}  // namespace kvlab
