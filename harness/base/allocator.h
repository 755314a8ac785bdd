// The programs' malloc: jemalloc in place of the C library's, since it can ask for huge pages (2
// MiB) where the system gives them to those who ask. Weights and caches are read in long
// stretches, which pages of 4 KiB make slower (docs/runtime.md, "Memory").
#pragma once

#include <string>

namespace kvlab {

// "jemalloc 5.3.0, thp:always", or "the C library's" in builds without it. A program that names
// its allocator is linked with it.
std::string allocator_name();

}  // namespace kvlab
