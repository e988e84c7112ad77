// Shared memory of a block. Each variable is aligned as TVM aligns it, and ends within 64 bytes of
// a page that is not there. What is written behind it is found, at once or when the block has run,
// even where a neighbour would lie there on a device.
#pragma once
#include <stddef.h>

#include <vector>

#include "kernel_abi.h"

namespace stand_in {

class SharedMemory {
 public:
  ~SharedMemory();
  void begin_launch(const KernelEntry& kernel, size_t dynamic_bytes);
  void begin_block();  // fills what is there with 0xFF: floats are NaN, indices far away
  bool is_intact() const;  // whether nobody has written between a variable and the page behind it
  char* variable(unsigned number) const { return starts_[number]; }
  char* dynamic() const { return starts_.back(); }

 private:
  struct Region {
    char* mapped;
    size_t wanted, bytes;  // of the variable, and with what fills it up
    char* start() const;
  };
  char* place(size_t bytes);

  std::vector<Region> regions_;
  size_t used_ = 0;            // regions of this launch
  std::vector<char*> starts_;  // of the variables, and of the dynamic memory
};

}  // namespace stand_in
