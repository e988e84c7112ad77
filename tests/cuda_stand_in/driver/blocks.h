// Runs the blocks of one launch on the CPU.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

#include "kernel_abi.h"

namespace stand_in {

struct Launch {
  const KernelEntry* kernel;
  Index3 grid, block;
  size_t dynamic_shared_bytes;
  bool is_cooperative;  // all blocks are alive at once: they may wait for each other
  void** arguments;
};

// How a launch has failed; `error` is 0 where it has not. `steps` are those of all its threads,
// where the text counts them.
struct Fault {
  int error = 0;
  std::string why;
  uintptr_t address = 0;
  Index3 block{}, thread{};
  uint64_t steps = 0;
};

// Not to be called by two threads at once.
Fault run_blocks(const Launch& launch);

}  // namespace stand_in
