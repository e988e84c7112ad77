// Shared memory of a block. Each variable ends at a page that is not there, so that the first
// element behind it is an illegal access, even where a neighbour would lie there on a device.
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
  char* variable(unsigned number) const { return starts_[number]; }
  char* dynamic() const { return starts_.back(); }

 private:
  struct Region {
    char* mapped;
    size_t bytes;  // in use, up to its end
    char* start() const;
  };
  char* place(size_t bytes);

  std::vector<Region> regions_;
  size_t used_ = 0;            // regions of this launch
  std::vector<char*> starts_;  // of the variables, and of the dynamic memory
};

}  // namespace stand_in
