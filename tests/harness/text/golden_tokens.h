// What the golden tests of tokenizers share: reading tests/golden/tokens and hashing as
// make_tokens.py does.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

// tests/golden/tokens/`name`.
Json read_golden_tokens(const std::string& name);

// Every string below `value`, objects by key.
void append_strings(const Json& value, std::vector<std::string>& out);

// {"tokens", "ids_sha256", "text_sha256"} of `strings`, as the golden files have them.
Json digest(const Tokenizer& tokenizer, const std::vector<std::string>& strings, bool special);

inline constexpr std::string_view kGoldenModels[] = {
    "SmolLM2-135M-Instruct", "Llama-3.1-8B-Instruct", "Qwen3-8B", "Mistral-7B-Instruct-v0.2"};

}  // namespace kvlab
