#include "fibers.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace stand_in {

// Only what a called function must keep: the rest is the caller's to save (System V, x86-64).
asm(R"(
.text
.globl stand_in_switch_stack
.hidden stand_in_switch_stack
.type stand_in_switch_stack, @function
stand_in_switch_stack:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size stand_in_switch_stack, . - stand_in_switch_stack
)");

namespace {
constexpr size_t STACK_BYTES = 64 << 10, PAGE = 4096, STRIDE = STACK_BYTES + PAGE;
constexpr int SAVED_REGISTERS = 6;
}  // namespace

Stacks::~Stacks() {
  if (base_) munmap(base_, count_ * STRIDE);
}

void Stacks::reserve(unsigned count) {
  if (count <= count_) return;
  if (base_) munmap(base_, count_ * STRIDE);
  // Shared, because the product limits what its children may map privately (RLIMIT_DATA).
  void* at = mmap(nullptr, count * STRIDE, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) abort();
  base_ = static_cast<char*>(at);
  count_ = count;
  // A stack that runs over meets a page that is not there, and not its neighbour.
  for (unsigned n = 0; n < count; ++n) mprotect(base_ + n * STRIDE, PAGE, PROT_NONE);
}

void* Stacks::fresh(unsigned number, void (*entry)()) {
  void** top = reinterpret_cast<void**>(base_ + (number + 1) * STRIDE - 64);
  *--top = nullptr;  // the return address of `entry`, which never returns; also aligns the stack
  *--top = reinterpret_cast<void*>(entry);
  for (int n = 0; n < SAVED_REGISTERS; ++n) *--top = nullptr;
  return top;
}

}  // namespace stand_in
