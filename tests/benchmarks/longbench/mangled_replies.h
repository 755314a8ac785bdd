// The mangled replies of tests/golden/mangled_replies.py, derived here from the same recipes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvlab {

// splitmix64.
class MangleRandom {
 public:
  explicit MangleRandom(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// `kind` as in the script; an unknown kind gives nothing.
std::u32string mangle(std::string_view kind, const std::u32string& reply,
                      const std::u32string& reference, const std::u32string& other,
                      MangleRandom& random);

}  // namespace kvlab
