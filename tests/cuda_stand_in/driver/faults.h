// Turns what a kernel does wrong (SIGSEGV, SIGBUS, SIGFPE) into an error of the launch.
#pragma once
#include <setjmp.h>
#include <stdint.h>

namespace stand_in {

// Of each thread of the system that runs blocks.
struct Catcher {
  sigjmp_buf escape;
  volatile bool is_armed = false;
  volatile int error = 0;
  const char* volatile why = "";
  volatile uintptr_t address = 0;
};

void install_fault_handlers();       // before a launch: others may have replaced them since
void use_catcher(Catcher* catcher);  // for this thread, with a stack of its own for signals
[[noreturn]] void escape(int error, const char* why);

}  // namespace stand_in
