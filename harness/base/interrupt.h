// Ctrl-C and SIGTERM, turned into a flag that long work looks at.
#pragma once

namespace kvlab {

// From now on the first signal sets the flag; a second one ends the process at once.
void catch_interrupts();
bool interrupted();

}  // namespace kvlab
