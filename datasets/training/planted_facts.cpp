#include "datasets/training/planted_facts.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace kvlab {

const std::vector<FactWording>& fact_wordings() {
  static const auto* const wordings = new std::vector<FactWording>{
      {"access code", "access codes", "The access code for {subject} is {value}.",
       "What is the access code for {subjects}?", "The access code for {subjects} is"},
      {"locker number", "locker numbers", "Locker number {value} belongs to {subject}.",
       "Which locker number belongs to {subjects}?", "{subjects} has locker number"},
      {"serial number", "serial numbers", "{subject} carries the serial number {value}.",
       "Tell me the serial number of {subjects}.", "The serial number of {subjects} is"},
      {"order reference", "order references", "Order reference of {subject}: {value}.",
       "Find the order reference of {subjects}.", "The order reference of {subjects}:"},
      {"ticket", "tickets", "Please note that ticket {value} was opened by {subject}.",
       "Which ticket was opened by {subjects}?", "The ticket opened by {subjects} is"},
      {"extension", "extensions", "You can reach {subject} at extension {value}.",
       "At which extension can {subjects} be reached?", "You can reach {subjects} at"},
      {"reading", "readings", "On that day the sensor {subject} showed a reading of {value}.",
       "What reading did the sensor {subjects} show?", "The sensor {subjects} showed"},
      {"password", "passwords", "Remember: the password of {subject} has been set to {value}.",
       "What has the password of {subjects} been set to?", "The password of {subjects} is"},
      {"gate number", "gate numbers", "{value} is the number that opens the {subject} gate.",
       "What number opens the {subjects} gate?", "The number that opens the {subjects} gate is"},
      {"passage key", "passage keys", "Keep in mind the key {value}, which stands for {subject}.",
       "Which key stands for {subjects}?", "The key that stands for {subjects} is"},
  };
  return *wordings;
}

std::string fill_in(const char* pattern, std::string_view name, const std::string& value,
                    std::string_view second, const std::string& second_value) {
  std::string text(pattern);
  for (const auto& [key, with] : {std::pair(fmt::format("{{{}}}", name), value),
                                  std::pair(fmt::format("{{{}}}", second), second_value)}) {
    const size_t at = text.find(key);
    if (at != std::string::npos) {
      text.replace(at, key.size(), with);
    }
  }
  return text;
}

std::string random_identifier(SeededRandom& random) {
  const std::string hex = "0123456789abcdef";
  return fmt::format("{}-{}-{}-{}-{}", random.from_alphabet(hex, 8), random.from_alphabet(hex, 4),
                     random.from_alphabet(hex, 4), random.from_alphabet(hex, 4),
                     random.from_alphabet(hex, 12));
}

ValueMaker::ValueMaker(const TrainingCorpus& corpus, SeededRandom& random)
    : corpus_(corpus), style_(random.below(8)), length_(random.between(4, 9)) {}

ValueMaker ValueMaker::of_identifiers(const TrainingCorpus& corpus, SeededRandom& random) {
  ValueMaker values(corpus, random);
  values.style_ = kIdentifiers;
  return values;
}

std::string ValueMaker::make(SeededRandom& random) const {
  switch (style_) {
    case kIdentifiers:
      return random_identifier(random);
    case 1:
      return random.pick(corpus_.words);
    case 2:
      return fmt::format("{}-{}", random.from_alphabet("ABCDEFGHJKLMNPQRSTUVWXYZ", 2),
                         random.digits(4));
    case 3:
      return random.from_alphabet("0123456789abcdef", 12);
    default:
      return random.digits(length_);
  }
}

std::vector<std::string> make_subjects(const TrainingCorpus& corpus, SeededRandom& random,
                                       int64_t count) {
  const int64_t style = random.below(5);
  std::set<std::string> seen;
  std::vector<std::string> subjects;
  while (static_cast<int64_t>(subjects.size()) < count) {
    std::string subject = style == 0   ? random_identifier(random)
                          : style == 1 ? random.pick(corpus.words)
                                       : random.pick(corpus.words) + (style == 2 ? " " : "-") +
                                             random.pick(corpus.words);
    if (seen.insert(subject).second) {
      subjects.push_back(std::move(subject));
    }
  }
  return subjects;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? ", and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace kvlab
