// Statements planted in a text: their wordings, the values they give and the subjects they are
// about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/training/documents.h"
#include "datasets/training/seeded_random.h"

namespace kvlab {

struct FactWording {
  const char* field;  // what is asked for
  const char* plural;
  const char* statement;  // {subject}, {value}
  const char* question;   // {subjects}
  const char* reply;      // beginning of a reply, {subjects}
};

const std::vector<FactWording>& fact_wordings();

// `pattern` with "{name}" replaced by `value`, and "{second}" by `second_value`.
std::string fill_in(const char* pattern, std::string_view name, const std::string& value,
                    std::string_view second = "", const std::string& second_value = "");

// Eight, four, four, four and twelve hexadecimal digits.
std::string random_identifier(SeededRandom& random);

// Makes values of one style, so that what is asked for and what is not look alike.
class ValueMaker final {
 public:
  ValueMaker(const TrainingCorpus& corpus, SeededRandom& random);
  static ValueMaker of_identifiers(const TrainingCorpus& corpus, SeededRandom& random);

  std::string make(SeededRandom& random) const;

 private:
  static constexpr int64_t kIdentifiers = 0;
  const TrainingCorpus& corpus_;
  int64_t style_;
  int64_t length_;
};

// Distinct subjects of one style: "amber-kettle", "amber kettle", or an identifier.
std::vector<std::string> make_subjects(const TrainingCorpus& corpus, SeededRandom& random,
                                       int64_t count);

// "A, B, and C"
std::string join_names(const std::vector<std::string>& names);

}  // namespace kvlab
