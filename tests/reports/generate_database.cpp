// Makes a results database of any size without a model.
//   generate_results FILE [SAMPLES_PER_TASK TASKS METHODS BUDGETS LENGTHS]
#include <fmt/format.h>

#include <cstdlib>

#include "harness/base/status.h"
#include "tests/reports/synthetic_results.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: generate_results FILE [SAMPLES_PER_TASK TASKS METHODS BUDGETS LENGTHS]\n");
    return 2;
  }
  kvlab::SyntheticSizes sizes;
  int64_t* const fields[] = {&sizes.samples, &sizes.tasks, &sizes.methods, &sizes.budgets,
                             &sizes.lengths};
  for (int i = 2; i < argc && i < 7; ++i) {
    *fields[i - 2] = std::atoll(argv[i]);
  }
  sizes.bulky = sizes.samples <= 50;
  const absl::Status status = kvlab::write_synthetic_results(argv[1], sizes);
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", kvlab::message_of(status));
    return 1;
  }
  return 0;
}
