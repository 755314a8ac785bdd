#include "datasets/free_haystack.h"

#include <array>
#include <cctype>

#include "datasets/python_random.h"
#include "harness/base/sha256.h"
#include "harness/text/python_utf8.h"

namespace kvlab {
namespace {

constexpr std::string_view kName = "kvlab-prose-1";
constexpr uint64_t kSeed = 20260101;
constexpr size_t kWords = 100'000;

// 1 to 3: the paragraph's own nouns; n, a, v: a fresh noun, adjective and verb.
constexpr std::array<std::string_view, 30> kPatterns = {
    "Nobody had asked about the $1 before, and the $2 gave no hint of it.",
    "The $a $1 stood a little apart from the $2, as it had for years.",
    "Anyone who wants to $v a $1 should first look at the $n beside it.",
    "It took most of the morning to $v the $2, and the $1 was still $a in the end.",
    "She kept a note about the $1 in her pocket and read it on the way home.",
    "There was a $n near the door, a $n by the window, and no sign of the $3.",
    "People often say that a $a $2 is worth more than a $n, but few of them mean it.",
    "What mattered was not the $1 itself but the $n that came with it.",
    "By the end of the week the $3 had become $a, and the $1 was forgotten.",
    "He meant to $v it at once, yet the $a $n on the table held him back.",
    "If the $2 ever changes, the $1 will have to change as well.",
    "The older ones remember a time when every $1 came with a $3.",
    "A letter arrived about the $n, written in a $a hand and signed by no one.",
    "They agreed to $v the $3 together and to leave the $n for another day.",
    "Some of this can be learned from a $n, but most of it cannot.",
    "Further along the road, the $a $n gave way to a quieter kind of $2.",
    "In the evening the talk turned to the $1 again, as it usually did.",
    "You could $v for an hour there without meeting a single $n.",
    "The plan was simple: find the $1, leave the $2 alone, and be back before dark.",
    "Not everything about the $3 was $a; parts of it were rather ordinary.",
    "Long after the $n was gone, its $a shadow seemed to stay on the wall.",
    "To $v well is one thing, and to $v on a $a day is another.",
    "Between the $1 and the $3 lay a field that no one had walked across in months.",
    "The reason turned out to be a $n, which surprised no one who knew the $2.",
    "My neighbour owns a $a $1 and lends it to whoever happens to need one.",
    "Most visitors come for the $2 and leave talking about the $n.",
    "When the rain stopped, someone began to $v, and the rest soon joined in.",
    "It is easy to praise the $1, and much harder to say what a $n is for.",
    "The second attempt went better, perhaps because the $3 was less $a this time.",
    "On the last page there was only a drawing of a $n and the word for $2."};

std::string sentence_of(std::string_view pattern, const std::array<std::string, 3>& nouns,
                        const WordLists& lists, PythonRandom& random) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$') {
      text += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'n':
        text += random.choice(lists.nouns);
        break;
      case 'a':
        text += random.choice(lists.adjectives);
        break;
      case 'v':
        text += random.choice(lists.verbs);
        break;
      default:
        text += nouns[static_cast<size_t>(pattern[i] - '1')];
    }
  }
  return text;
}

}  // namespace

Haystack make_free_haystack(const WordLists& lists) {
  PythonRandom random(kSeed);
  std::string text;
  size_t num_words = 0;
  while (num_words < kWords) {
    std::array<std::string, 3> nouns;
    for (std::string& noun : nouns) {
      noun = random.choice(lists.nouns);
    }
    for (const size_t pattern : random.sample(kPatterns.size(), 8)) {
      const std::string sentence = sentence_of(kPatterns[pattern], nouns, lists, random);
      num_words += python_words(sentence).size();
      text += (text.empty() ? "" : " ") + sentence;
    }
  }
  Haystack haystack;
  haystack.name = kName;
  haystack.words = python_words(text);
  haystack.content_hash = sha256_hex(text);
  return haystack;
}

}  // namespace kvlab
