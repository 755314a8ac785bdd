#include "benchmarks/longbench/metrics/answer_f1.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/text/python_text.h"

namespace kvlab {
namespace {

double bag_f1(const std::vector<std::u32string>& reply,
              const std::vector<std::u32string>& reference) {
  std::map<std::u32string_view, size_t> left;
  for (const std::u32string& word : reference) {
    ++left[word];
  }
  size_t common = 0;
  for (const std::u32string& word : reply) {
    const auto it = left.find(word);
    if (it != left.end() && it->second > 0) {
      --it->second;
      ++common;
    }
  }
  if (common == 0) {
    return 0;
  }
  const double precision = static_cast<double>(common) / static_cast<double>(reply.size());
  const double recall = static_cast<double>(common) / static_cast<double>(reference.size());
  return (2 * precision * recall) / (precision + recall);
}

// re.sub(r"\b(a|an|the)\b", " ", text).
std::u32string replace_articles(std::u32string_view text) {
  constexpr std::u32string_view kArticles[] = {U"a", U"an", U"the"};
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    if (!is_python_word_character(text[i])) {
      out.push_back(text[i++]);
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_python_word_character(text[end])) {
      ++end;
    }
    const std::u32string_view word = text.substr(i, end - i);
    const bool is_article =
        std::find(std::begin(kArticles), std::end(kArticles), word) != std::end(kArticles);
    out.append(is_article ? U" " : word);
    i = end;
  }
  return out;
}

std::vector<std::u32string> answer_words(std::u32string_view answer) {
  std::u32string text = python_lower(answer);
  std::erase_if(text, is_ascii_punctuation);
  text = replace_articles(text);
  std::vector<std::u32string> words;
  for (const std::u32string_view word : split_white_space(text)) {
    words.emplace_back(word);
  }
  return words;
}

// The characters that LongBench deletes from Chinese words beside ASCII punctuation.
bool is_chinese_punctuation(char32_t c) {
  constexpr std::u32string_view kPunctuation =
      U"！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
      U"〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.";
  return kPunctuation.find(c) != std::u32string_view::npos;
}

std::vector<std::u32string> answer_words_zh(std::u32string_view answer, const Jieba& jieba) {
  std::vector<std::u32string> words;
  for (const std::u32string_view piece : jieba.cut(answer)) {
    std::u32string word = python_lower(piece);
    std::erase_if(word, [](char32_t c) {
      return is_ascii_punctuation(c) || is_chinese_punctuation(c) || is_python_space(c);
    });
    if (!word.empty()) {
      words.push_back(std::move(word));
    }
  }
  return words;
}

}  // namespace

double answer_f1(std::u32string_view reply, std::u32string_view reference) {
  return bag_f1(answer_words(reply), answer_words(reference));
}

double answer_f1_zh(std::u32string_view reply, std::u32string_view reference, const Jieba& jieba) {
  return bag_f1(answer_words_zh(reply, jieba), answer_words_zh(reference, jieba));
}

}  // namespace kvlab
