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

  // Runs the script on folders below dir_; its exit code. What it says goes to out.txt.
  int render(const std::vector<std::string>& folders, const std::string& options = "") const {
    const auto python = cache_dir() / "python" / "bin" / "python";
    std::string command = fmt::format("'{}' '{}/scripts/render_prompt_format.py' {}",
                                      python.string(), KVLAB_SOURCE_DIR, options);
    for (const std::string& folder : folders) {
      command += fmt::format(" '{}'", (dir_ / folder).string());
    }
    command += fmt::format(" > '{}' 2>&1", (dir_ / "out.txt").string());
    return std::system(command.c_str());
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
  std::vector<std::string> folders;
  for (const auto& [name, expected] : golden->at("templates").items()) {
    folders.push_back(std::to_string(folders.size()));
    write(folders.back() + "/special_tokens_map.json",
          R"({"bos_token": "<BOS>", "eos_token": {"content": "<EOS>"}})");
    const auto text = read_file(data / name);
    ASSERT_TRUE(text.ok()) << text.status();
    write(folders.back() + (name.ends_with(".jinja") ? "/chat_template.jinja" : "/other.json"),
          *text);
    if (!name.ends_with(".jinja")) {
      const auto config = parse_json(*text, name);
      ASSERT_TRUE(config.ok()) << config.status();
      write(folders.back() + "/tokenizer_config.json",
            Json{{"chat_template", config->at("chat_template")}}.dump());
    }
  }
  ASSERT_EQ(render(folders), 0) << said();
  size_t index = 0;
  for (const auto& [name, expected] : golden->at("templates").items()) {
    SCOPED_TRACE(name);
    const auto format = PromptFormat::load(dir_ / folders[index++]);
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
      {"{{ messages[0].content.replace('  ', ' ') }}", "changes the user's text itself"},
      {"{% for m in messages %}{{ m.content }}", ", line 1"},
      {"{{ raise_exception('only tools') }}", "only tools"},
      {"{{ bos_token }}{{ messages[0].content }}", "uses bos_token"},
  };
  std::vector<std::string> folders;
  for (const auto& [text, reason] : cases) {
    folders.push_back(std::to_string(folders.size()));
    write(folders.back() + "/chat_template.jinja", text);
  }
  EXPECT_NE(render(folders), 0);
  const std::string all = said();
  for (size_t i = 0; i < cases.size(); ++i) {
    // The script's message about this folder.
    const size_t begin = all.find((dir_ / folders[i] / "chat_template.jinja").string());
    ASSERT_NE(begin, std::string::npos) << all;
    const size_t line = all.rfind('\n', begin) + 1;  // npos + 1 is the start
    EXPECT_THAT(all.substr(line, all.find('\n', begin) - line), HasSubstr(cases[i].second));
    EXPECT_FALSE(std::filesystem::exists(dir_ / folders[i] / "prompt_format.json"));
  }
}

TEST_F(PromptFormatTest, ALaterTemplateMakesTheOldFormatAnError) {
  KVLAB_PYTHON_OR_SKIP();
  write("chat_template.jinja", "<u>{{ messages[0].content }}</u>\r\n");
  ASSERT_EQ(render({"."}), 0) << said();
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
              HasSubstr("/python scripts/render_prompt_format.py " + dir_.string()));
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
