#include "faults.h"

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "errors.h"

namespace stand_in {
namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int SIGNAL_COUNT = 4;
struct sigaction earlier[SIGNAL_COUNT];
thread_local Catcher* own_catcher;

// Without an address the processor complained of a misaligned vector, or of an address of more
// than 47 bits: the instruction tells which. Moves of aligned vectors are 28, 29, 6f and 7f behind
// their prefixes.
bool is_aligned_move(const unsigned char* code) {
  if (*code == 0x66 || *code == 0xf3) ++code;
  if ((*code & 0xf0) == 0x40) ++code;
  code += *code == 0xc5 ? 2 : *code == 0xc4 ? 3 : 1;
  return *code == 0x28 || *code == 0x29 || *code == 0x6f || *code == 0x7f;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  for (int n = 0; n < SIGNAL_COUNT; ++n) {
    if (SIGNALS[n] != signal) continue;
    const struct sigaction& old = earlier[n];
    if ((old.sa_flags & SA_SIGINFO) && old.sa_sigaction)
      return old.sa_sigaction(signal, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
    struct sigaction plain{};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);  // the instruction is repeated, and ends the process
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  Catcher* catcher = own_catcher;
  if (!catcher || !catcher->is_armed) return pass_on(signal, info, context);
  const auto* code = reinterpret_cast<const unsigned char*>(
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  catcher->address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (signal == SIGFPE) {
    catcher->error = LAUNCH_FAILED;
    catcher->why = "an integer division by zero";
  } else if (signal == SIGILL) {  // where the sanitizer of bounds stops: see toolchain.py
    catcher->error = ILLEGAL_ADDRESS;
    catcher->why = "an index outside an array of a thread or a block";
  } else if (signal == SIGSEGV && info->si_code == SI_KERNEL && is_aligned_move(code)) {
    catcher->error = MISALIGNED_ADDRESS;
    catcher->why = "a misaligned address";
  } else {
    catcher->error = ILLEGAL_ADDRESS;
    catcher->why = "an illegal address";
  }
  siglongjmp(catcher->escape, 1);
}

}  // namespace

void install_fault_handlers() {
  for (int n = 0; n < SIGNAL_COUNT; ++n) {
    struct sigaction present{}, ours{};
    sigaction(SIGNALS[n], nullptr, &present);
    if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == handle) continue;
    earlier[n] = present;
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGNALS[n], &ours, nullptr);
  }
}

void use_catcher(Catcher* catcher) {
  constexpr size_t BYTES = 64 << 10;
  own_catcher = catcher;
  stack_t alternate{};
  alternate.ss_size = BYTES;
  alternate.ss_sp = malloc(BYTES);
  sigaltstack(&alternate, nullptr);
}

void escape(int error, const char* why) {
  own_catcher->error = error;
  own_catcher->why = why;
  siglongjmp(own_catcher->escape, 1);
}

}  // namespace stand_in
