// Filler text of a wanted token length, into which facts are placed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/training/documents.h"
#include "datasets/training/seeded_random.h"

namespace kvlab {

using TokenCounter = std::function<int64_t(std::string_view)>;

// Pieces (paragraphs or lines) whose joint length is close to `tokens`: never above it by more
// than one piece.
std::vector<std::string> document_filler(const TrainingCorpus& corpus, SeededRandom& random,
                                         const TokenCounter& count, int64_t tokens);

// A handful of sentences, repeated until the length is reached.
std::vector<std::string> repeated_filler(const TrainingCorpus& corpus, SeededRandom& random,
                                         const TokenCounter& count, int64_t tokens);

// A run of consecutive text from one document (code or prose) of about `tokens` tokens.
std::string document_run(const TrainingCorpus& corpus, SeededRandom& random,
                         const TokenCounter& count, int64_t tokens, bool code);

// A sentence of 6 to 30 words from a random document, without line breaks.
std::string random_sentence(const TrainingCorpus& corpus, SeededRandom& random);

// Puts each of `inserts` between two pieces, at random places, and joins all with `separator`.
std::string join_with_inserts(std::vector<std::string> pieces, std::vector<std::string> inserts,
                              SeededRandom& random, std::string_view separator);

}  // namespace kvlab
