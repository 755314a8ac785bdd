#include "harness/base/interrupt.h"

#include <csignal>

namespace kvlab {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;

void on_signal(int signal) {
  interrupt_flag = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return interrupt_flag != 0; }

}  // namespace kvlab
