// KVLAB_CHECK: aborts on a broken invariant of our own. Never for user input,
// which gets an absl::Status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define KVLAB_CHECK(condition)                                                           \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "kvlab: broken invariant at %s:%d: %s\n", __FILE__, __LINE__, \
                   #condition);                                                          \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
