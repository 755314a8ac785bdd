#include "datasets/training/text_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "datasets/training/planted_facts.h"

namespace kvlab {
namespace {

// The first `max_characters` of a text, cut between words.
std::string first_part(std::string text, size_t max_characters) {
  if (text.size() > max_characters) {
    text.resize(max_characters);
    const size_t space = text.find_last_of(" \n");
    text.resize(space == std::string::npos ? max_characters : space);
  }
  return text;
}

// The same on one line.
std::string first_words(const std::string& paragraph, size_t max_characters) {
  std::string line = first_part(paragraph, max_characters);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// A reply that copies what follows the first `at` characters; empty where hardly anything does. One
// that begins a turn begins with a word.
std::string words_from(const std::string& text, size_t at, bool begins_turn) {
  constexpr size_t kFewest = 12;
  constexpr size_t kMost = 200;
  if (begins_turn) {
    at = std::min(text.find_first_not_of(" \n", at), text.size());
  }
  return at + kFewest < text.size() ? first_part(text.substr(at), kMost) : "";
}

// A few words from somewhere in a text, on one line.
std::string words_of(const std::string& text, SeededRandom& random) {
  const size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size())));
  const size_t word =
      text.find_first_not_of(" \n", std::min(text.find_first_of(" \n", at), at + 40));
  return first_words(text.substr(word == std::string::npos ? 0 : word),
                     static_cast<size_t>(random.between(12, 40)));
}

// Runs of documents until they fill the prompt, each of next_tokens(room left) tokens, some of
// code.
template <typename NextTokens>
std::vector<std::string> document_runs(const PromptContext& context, SeededRandom& random,
                                       double code_chance, const NextTokens& next_tokens) {
  std::vector<std::string> runs;
  int64_t room = context.tokens - kOverheadTokens;
  while (room > 0) {
    const bool code = random.chance(code_chance);
    const int64_t tokens = next_tokens(room);
    runs.push_back(document_run(*context.corpus, random, context.count, tokens, code));
    room -= context.count(runs.back()) + 6;
  }
  return runs;
}

const char* source_title(const std::string& source) {
  if (source == "git") return "version control";
  if (source == "perl") return "the Perl language";
  if (source == "linux") return "the kernel";
  if (source == "python") return "Python code";
  if (source == "postgresql") return "databases";
  if (source == "policy") return "packaging rules";
  return "system administration";
}

}  // namespace

TrainingPrompt make_passages_prompt(const PromptContext& context, SeededRandom& random) {
  const std::vector<std::string> passages =
      document_runs(context, random, 0.05, [&](int64_t) { return random.between(60, 260); });
  const std::string label = random.pick(std::vector<std::string>{"Passage", "Section", "Note"});
  std::string text;
  for (size_t i = 0; i < passages.size(); ++i) {
    text += fmt::format("[{} {}]\n{}\n\n", label, i + 1, passages[i]);
  }
  const size_t wanted = static_cast<size_t>(random.below(static_cast<int64_t>(passages.size())));
  const std::string& passage = passages[wanted];
  TrainingPrompt prompt;
  prompt.kind = "passages";
  if (random.chance(0.35)) {
    const std::string quote =
        first_words(passage.substr(std::min(passage.size() / 3, passage.size() - 1)), 90);
    prompt.text = fmt::format("{}In which {} do these words stand: \"{}\"?", text, label, quote);
    const bool forced = random.chance(0.5);
    prompt.answer_prefix = forced ? fmt::format("They stand in {}", label) : "";
    prompt.given_reply =
        forced ? fmt::format(" {}.", wanted + 1) : fmt::format("{} {}.", label, wanted + 1);
    prompt.max_new_tokens = 32;
    return prompt;
  }
  // A question whose answer the passage holds: what it says about one of its own words.
  std::string topic = first_words(passage, 60);
  prompt.text = random.chance(0.5)
                    ? fmt::format(
                          "{}Answer from the text only, in a few words. What does it say "
                          "about this: \"{}\"?",
                          text, topic)
                    : fmt::format("{}Question: what comes after \"{}\" in the text?", text, topic);
  prompt.answer_prefix = random.chance(0.5) ? "Answer:" : "";
  prompt.given_reply =
      words_from(passage, topic.size(), /*begins_turn=*/prompt.answer_prefix.empty());
  prompt.max_new_tokens = 48;
  return prompt;
}

TrainingPrompt make_questions_prompt(const PromptContext& context, SeededRandom& random) {
  static const std::vector<const char*> questions = {
      "What does the text say about \"{topic}\"?",
      "Explain in a few sentences what is said about \"{topic}\".",
      "According to what you have read, why does \"{topic}\" matter?",
      "How does \"{topic}\" work? Keep to the text and be brief.",
      "What should one know about \"{topic}\"? Reply with as few words as you can.",
      "Where does \"{topic}\" come up, and in which connection?",
  };
  const bool several = random.chance(0.5);
  const std::vector<std::string> documents = document_runs(context, random, 0.1, [&](int64_t room) {
    return several ? std::min(room, random.between(200, 1200)) : room;
  });
  std::string text;
  for (size_t i = 0; i < documents.size(); ++i) {
    text +=
        several ? fmt::format("Document {}\n{}\n\n", i + 1, documents[i]) : documents[i] + "\n\n";
  }
  const std::string topic = words_of(random.pick(documents), random);
  const std::string question = fill_in(random.pick(questions), "topic", topic);
  TrainingPrompt prompt;
  prompt.kind = "questions";
  prompt.text = random.chance(0.5) ? fmt::format("I will ask about this text: {}\n\n{}{}", question,
                                                 text, question)
                                   : fmt::format("{}{}", text, question);
  prompt.answer_prefix = random.chance(0.3) ? "Answer:" : "";
  prompt.max_new_tokens = random.between(48, 256);
  return prompt;
}

TrainingPrompt make_completion_prompt(const PromptContext& context, SeededRandom& random) {
  const auto pieces =
      document_filler(*context.corpus, random, context.count, context.tokens - kOverheadTokens);
  std::string text = join_with_inserts(pieces, {}, random, "\n\n");
  const std::string& paragraph = random.pick(pieces);
  std::string begin = first_words(paragraph, static_cast<size_t>(random.between(40, 100)));
  TrainingPrompt prompt;
  prompt.kind = "completion";
  prompt.text = fmt::format(
      "{}\n\nOne sentence of the text begins with \"{}\". Write how it goes on.", text, begin);
  prompt.answer_prefix = random.chance(0.6) ? begin : "";
  prompt.given_reply =
      words_from(paragraph, begin.size(), /*begins_turn=*/prompt.answer_prefix.empty());
  prompt.max_new_tokens = 64;
  return prompt;
}

TrainingPrompt make_summary_prompt(const PromptContext& context, SeededRandom& random) {
  static const std::vector<std::string> requests = {
      "Summarize the text above in one paragraph.",
      "Give the main points of this text.",
      "Write a short summary of what you have read.",
      "What is this text about? Answer in a few sentences.",
  };
  TrainingPrompt prompt;
  prompt.kind = "summary";
  const std::string text = document_run(*context.corpus, random, context.count,
                                        context.tokens - kOverheadTokens, random.chance(0.1));
  const std::string& request = random.pick(requests);
  prompt.text = random.chance(0.5) ? fmt::format("{}\n\n{}", text, request)
                                   : fmt::format("You are given a report. {}\n\nReport:\n{}\n\n{}",
                                                 request, text, request);
  prompt.max_new_tokens = 512;
  return prompt;
}

TrainingPrompt make_continuation_prompt(const PromptContext& context, SeededRandom& random) {
  TrainingPrompt prompt;
  prompt.kind = "continuation";
  const bool code = random.chance(0.7);
  std::string text =
      document_run(*context.corpus, random, context.count, context.tokens - 20, code);
  // Cut at a random point of the last tenth, at a line break where code goes on by lines.
  const size_t cut =
      text.size() - static_cast<size_t>(random.below(static_cast<int64_t>(text.size() / 10) + 1));
  const size_t line = text.rfind('\n', cut == 0 ? 0 : cut - 1);
  const size_t end = code && line != std::string::npos && line > text.size() / 2 ? line + 1 : cut;
  prompt.chat_template = random.chance(0.3);
  prompt.given_reply = words_from(text, end, /*begins_turn=*/prompt.chat_template && !code);
  text.resize(end);
  prompt.text = prompt.chat_template
                    ? fmt::format("Go on with this {}:\n{}", code ? "code" : "text", text)
                    : text;
  prompt.max_new_tokens = 64;
  return prompt;
}

TrainingPrompt make_few_shot_prompt(const PromptContext& context, SeededRandom& random) {
  const std::string input = random.pick(std::vector<std::string>{"Text", "Snippet", "Input"});
  const std::string output = random.pick(std::vector<std::string>{"Topic", "Label", "Class"});
  std::string text =
      random.chance(0.5) ? "Say what each piece of text is about.\n\n" : std::string();
  int64_t have = 0;
  while (have < context.tokens - kOverheadTokens) {
    const TrainingDocument& document = random.pick(context.corpus->documents);
    const std::string shot = fmt::format(
        "{}: {}\n{}: {}\n\n", input,
        first_words(random.pick(document.paragraphs), static_cast<size_t>(random.between(80, 300))),
        output, source_title(document.source));
    have += context.count(shot);
    text += shot;
  }
  const TrainingDocument& last = random.pick(context.corpus->documents);
  text += fmt::format("{}: {}\n{}:", input, first_words(random.pick(last.paragraphs), 200), output);
  TrainingPrompt prompt;
  prompt.kind = "few_shot";
  prompt.text = std::move(text);
  prompt.chat_template = random.chance(0.3);
  prompt.given_reply =
      fmt::format("{}{}", prompt.chat_template ? "" : " ", source_title(last.source));
  prompt.max_new_tokens = 48;
  return prompt;
}

}  // namespace kvlab
