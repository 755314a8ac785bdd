#include "datasets/training/lookup_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "datasets/training/planted_facts.h"

namespace kvlab {
namespace {

// The right reply, "BEGINNING ANSWER.", of which the beginning may be forced.
void set_reply(const std::string& beginning, const std::string& answer, bool forced,
               TrainingPrompt& prompt) {
  prompt.answer_prefix = forced ? beginning : "";
  prompt.given_reply = fmt::format("{} {}.", forced ? "" : beginning, answer);
}

std::string wrap_document(const std::string& document, const std::string& about,
                          const std::string& question, SeededRandom& random) {
  switch (random.below(4)) {
    case 0:
      return fmt::format("{}\n\n{}", document, question);
    case 1:
      return fmt::format("Read the text below. It mentions {}.\n\n{}\n\nQuestion: {}", about,
                         document, question);
    case 2:
      return fmt::format("Here is a long text with {} in it; I will ask about them.\n{}\n{}", about,
                         document, question);
    default:
      return fmt::format("<text>\n{}\n</text>\nUse the text above. {}", document, question);
  }
}

// The `asked` words that occur most, falling by count, those of one count as they first occur; none
// where the count of the last is also that of a word left out.
std::vector<std::string> most_frequent(const std::vector<std::string>& list, int64_t asked) {
  std::vector<std::pair<std::string, int64_t>> counts;  // in the order of their first occurrence
  std::map<std::string, size_t> places;
  for (const std::string& word : list) {
    const auto [place, added] = places.try_emplace(word, counts.size());
    if (added) {
      counts.emplace_back(word, 0);
    }
    ++counts[place->second].second;
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto wanted = static_cast<size_t>(asked);
  const bool one_answer =
      counts.size() == wanted ||
      (counts.size() > wanted && counts[wanted - 1].second > counts[wanted].second);
  std::vector<std::string> words;
  for (size_t i = 0; one_answer && i < wanted; ++i) {
    words.push_back(counts[i].first);
  }
  return words;
}

struct FactsPlan {
  int64_t num_subjects = 1;
  int64_t asked = 1;        // subjects
  int64_t values_each = 1;  // of every subject
};

TrainingPrompt facts_prompt(const char* kind, const FactWording& wording, const ValueMaker& values,
                            const FactsPlan& plan, const PromptContext& context,
                            SeededRandom& random) {
  const std::vector<std::string> subjects =
      make_subjects(*context.corpus, random, plan.num_subjects);
  std::vector<std::string> statements;
  std::vector<std::string> planted;  // values in the order of their subjects
  for (const std::string& subject : subjects) {
    for (int64_t i = 0; i < plan.values_each; ++i) {
      planted.push_back(values.make(random));
      statements.push_back(fill_in(wording.statement, "subject", subject, "value", planted.back()));
    }
  }
  const bool repeated = random.chance(0.25);
  const auto filler = repeated ? repeated_filler(*context.corpus, random, context.count,
                                                 context.tokens - kOverheadTokens)
                               : document_filler(*context.corpus, random, context.count,
                                                 context.tokens - kOverheadTokens);
  const std::string document =
      join_with_inserts(filler, statements, random, repeated || random.chance(0.5) ? "\n" : "\n\n");

  std::vector<std::string> wanted(subjects.begin(), subjects.begin() + plan.asked);
  const std::string names = join_names(wanted);
  std::string question = fill_in(wording.question, "subjects", names);
  if (plan.values_each > 1) {
    question += fmt::format(" There are {}; list all of them.", plan.values_each);
  }
  TrainingPrompt prompt;
  prompt.kind = kind;
  prompt.text = wrap_document(document, wording.plural, question, random);
  planted.resize(static_cast<size_t>(plan.asked * plan.values_each));
  set_reply(fill_in(wording.reply, "subjects", names), join_names(planted), random.chance(0.7),
            prompt);
  prompt.max_new_tokens = random.chance(0.5) ? 32 : 96;
  return prompt;
}

}  // namespace

TrainingPrompt make_facts_prompt(const PromptContext& context, SeededRandom& random) {
  const FactWording& wording = random.pick(fact_wordings());
  const ValueMaker values(*context.corpus, random);
  FactsPlan plan;
  plan.num_subjects = random.chance(0.3) ? 1 : random.between(2, 6);
  plan.asked = random.chance(0.6) ? 1 : random.between(1, std::min<int64_t>(plan.num_subjects, 4));
  plan.values_each = plan.asked == 1 && random.chance(0.25) ? random.between(2, 4) : 1;
  return facts_prompt("facts", wording, values, plan, context, random);
}

TrainingPrompt make_several_prompt(const PromptContext& context, SeededRandom& random) {
  const FactWording& wording = random.pick(fact_wordings());
  const ValueMaker values = random.chance(0.25)
                                ? ValueMaker::of_identifiers(*context.corpus, random)
                                : ValueMaker(*context.corpus, random);
  FactsPlan plan;
  if (random.chance(0.5)) {
    plan.num_subjects = random.between(3, 6);
    plan.asked = random.between(3, std::min<int64_t>(plan.num_subjects, 5));
  } else {
    plan.num_subjects = random.between(1, 2);
    plan.values_each = random.between(3, 5);
  }
  return facts_prompt("several", wording, values, plan, context, random);
}

TrainingPrompt make_identifiers_prompt(const PromptContext& context, SeededRandom& random) {
  const FactWording& wording = random.pick(fact_wordings());
  const ValueMaker values = ValueMaker::of_identifiers(*context.corpus, random);
  FactsPlan plan;
  plan.num_subjects = random.chance(0.4) ? 1 : random.between(2, 8);
  return facts_prompt("identifiers", wording, values, plan, context, random);
}

TrainingPrompt make_examples_prompt(const PromptContext& context, SeededRandom& random) {
  const std::string source = random.pick(std::vector<std::string>{"Document", "Page", "Excerpt"});
  const std::string ask = random.pick(std::vector<std::string>{"Q", "Query", "Asked"});
  const std::string reply = random.pick(std::vector<std::string>{"A", "Reply", "Found"});
  const char* separator = random.chance(0.5) ? " " : "\n";
  std::string text = random.chance(0.5)
                         ? fmt::format("Every {} holds what is asked for below it.\n\n", source)
                         : std::string();
  int64_t have = 0;
  std::string answer;
  while (true) {
    const FactWording& wording = random.pick(fact_wordings());
    const ValueMaker values(*context.corpus, random);
    const std::string subject = make_subjects(*context.corpus, random, 1).front();
    answer = values.make(random);
    std::vector<std::string> pieces;
    for (int i = 0; i < 2; ++i) {
      const bool code = random.chance(0.05);
      const int64_t tokens = random.between(30, 200);
      pieces.push_back(document_run(*context.corpus, random, context.count, tokens, code));
    }
    const std::string passage = join_with_inserts(
        std::move(pieces), {fill_in(wording.statement, "subject", subject, "value", answer)},
        random, "\n");
    text += fmt::format("{}:{}{}\n{}:{}{}\n{}:", source, separator, passage, ask, separator,
                        fill_in(wording.question, "subjects", subject), reply);
    have += context.count(passage) + 30;
    if (have >= context.tokens - kOverheadTokens) {
      break;
    }
    text += fmt::format("{}{}\n\n", separator, answer);
  }
  TrainingPrompt prompt;
  prompt.kind = "examples";
  prompt.text = std::move(text);
  prompt.chat_template = random.chance(0.3);
  prompt.given_reply = (prompt.chat_template ? "" : separator) + answer;
  prompt.max_new_tokens = 32;
  return prompt;
}

TrainingPrompt make_records_prompt(const PromptContext& context, SeededRandom& random) {
  // The doubled braces and the unused draw below stay: the shipped adapter's prompts were made so.
  static const std::vector<const char*> formats = {
      "{subject}: {value}",
      "{subject} -> {value}",
      "{subject} = {value}",
      "* {subject} has {value}",
      "{{\"key\": \"{subject}\", \"value\": \"{value}\"}}",
      "The entry of {subject} says {value}.",
      "Item {subject} is stored at {value}.",
      "{value} was given to {subject}",
  };
  const std::string format = random.pick(formats);
  const ValueMaker values(*context.corpus, random);
  const std::string sample =
      fill_in(format.c_str(), "subject", random_identifier(random), "value", values.make(random));
  const int64_t most = std::max<int64_t>(8, (context.tokens - kOverheadTokens) / 6);
  std::vector<std::string> subjects = make_subjects(*context.corpus, random, most);
  std::string document;
  std::vector<std::string> used;
  std::vector<std::string> used_values;
  int64_t have = 0;
  for (const std::string& subject : subjects) {
    const std::string value = values.make(random);
    const std::string line = fill_in(format.c_str(), "subject", subject, "value", value);
    have += context.count(line) + 1;
    if (have > context.tokens - kOverheadTokens) {
      break;
    }
    document += line + "\n";
    used.push_back(subject);
    used_values.push_back(value);
  }
  const std::string& wanted = random.pick(used);
  const std::string& answer = used_values[static_cast<size_t>(&wanted - used.data())];
  TrainingPrompt prompt;
  prompt.kind = "records";
  prompt.text = random.chance(0.5)
                    ? fmt::format("{}\nWhat does the list above say for {}?", document, wanted)
                    : fmt::format("Look up one line in this list.\n{}\nWhich value goes with {}?",
                                  document, wanted);
  const int64_t form = random.below(3);  // two beginnings to go on from, or none
  set_reply(form == 1 ? fmt::format("For {} the list says", wanted)
                      : fmt::format("The value that goes with {} is", wanted),
            answer, /*forced=*/form < 2, prompt);
  prompt.max_new_tokens = 48;
  return prompt;
}

TrainingPrompt make_aliases_prompt(const PromptContext& context, SeededRandom& random) {
  static const std::vector<std::pair<const char*, const char*>> wordings = {
      {"let {subject} = {value};", "let {subject} = {value};"},
      {"set {subject} to {value}", "copy {value} into {subject}"},
      {"{subject} holds the number {value}.", "{subject} was renamed from {value}."},
      {"export {subject}={value}", "export {subject}=${value}"},
  };
  const auto& [first, next] = random.pick(wordings);
  const int64_t chains = random.between(1, 3);
  std::vector<std::string> statements;
  std::string asked_value;
  std::vector<std::string> asked_names;
  for (int64_t chain = 0; chain < chains; ++chain) {
    const std::string value = random.digits(random.between(4, 6));
    std::string previous;
    asked_names.clear();
    const int64_t hops = random.between(2, 5);
    for (int64_t hop = 0; hop < hops; ++hop) {
      const std::string name =
          random.from_alphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZ", random.between(3, 6));
      statements.push_back(hop == 0 ? fill_in(first, "subject", name, "value", value)
                                    : fill_in(next, "subject", name, "value", previous));
      previous = name;
      asked_names.push_back(name);
    }
    asked_value = value;
  }
  // The order matters here: statements are placed at ascending random places.
  const bool repeated = random.chance(0.6);
  std::vector<std::string> pieces = repeated
                                        ? repeated_filler(*context.corpus, random, context.count,
                                                          context.tokens - kOverheadTokens)
                                        : document_filler(*context.corpus, random, context.count,
                                                          context.tokens - kOverheadTokens);
  std::vector<int64_t> places;
  for (size_t i = 0; i < statements.size(); ++i) {
    places.push_back(random.between(0, static_cast<int64_t>(pieces.size())));
  }
  std::sort(places.begin(), places.end());
  for (size_t i = statements.size(); i-- > 0;) {
    pieces.insert(pieces.begin() + places[i], statements[i]);
  }
  const std::string document = join_with_inserts(std::move(pieces), {}, random, "\n");
  TrainingPrompt prompt;
  prompt.kind = "aliases";
  prompt.text = fmt::format("{}\n\nWhich names above end up with the value {}? List every one.",
                            document, asked_value);
  set_reply(fmt::format("The names with the value {} are:", asked_value), join_names(asked_names),
            random.chance(0.7), prompt);
  prompt.max_new_tokens = 32;
  return prompt;
}

TrainingPrompt make_counts_prompt(const PromptContext& context, SeededRandom& random) {
  const bool made_up = random.chance(0.4);
  const auto make_word = [&] {
    return made_up ? random.from_alphabet("abcdefghijklmnopqrstuvwxyz", random.between(5, 7))
                   : random.pick(context.corpus->words);
  };
  const int64_t common = random.between(3, 10);
  const int64_t common_times = random.between(8, 30);
  const int64_t rare_times = random.between(1, 3);
  std::vector<std::string> list;
  int64_t have = 0;
  const bool numbered = !made_up && random.chance(0.7);
  std::string probe;  // twenty words tell how many tokens a word takes
  for (int i = 0; i < 20; ++i) {
    probe += numbered ? fmt::format("{}) {}\n", 100 + i, make_word()) : make_word() + " ";
  }
  const int64_t room = std::max<int64_t>(
      40, (context.tokens - kOverheadTokens) * 20 / std::max<int64_t>(20, context.count(probe)));
  for (int64_t i = 0; i < common; ++i) {
    const std::string word = make_word();
    // Falling counts for made-up words, equal ones for the numbered list.
    const int64_t times = std::max<int64_t>(
        2, made_up ? static_cast<int64_t>(static_cast<double>(room) * 0.4 /
                                          std::pow(static_cast<double>(i + 1), 1.6))
                   : common_times);
    for (int64_t t = 0; t < times && have < room; ++t, ++have) {
      list.push_back(word);
    }
  }
  while (have < room) {
    const std::string word = make_word();
    for (int64_t t = 0; t < rare_times && have < room; ++t, ++have) {
      list.push_back(word);
    }
  }
  random.shuffle(list);
  std::string document;
  for (size_t i = 0; i < list.size(); ++i) {
    document += numbered ? fmt::format("{}) {}\n", i + 1, list[i]) : list[i] + " ";
  }
  const int64_t asked = std::min<int64_t>(common, made_up ? 3 : random.between(3, 10));
  TrainingPrompt prompt;
  prompt.kind = "counts";
  prompt.text =
      random.chance(0.5)
          ? fmt::format("{}\n\nWhich {} words come up most in the list above?", document, asked)
          : fmt::format(
                "Some words of this list come up much more than others.\n\n{}\n\n"
                "Name the {} that come up most.",
                document, asked);
  const std::vector<std::string> answer = most_frequent(list, asked);
  const bool forced = random.chance(0.7);
  set_reply(fmt::format("The {} words that come up most are:", asked), join_names(answer), forced,
            prompt);
  if (answer.empty()) {
    prompt.given_reply.clear();
  }
  prompt.max_new_tokens = 64;
  return prompt;
}

}  // namespace kvlab
