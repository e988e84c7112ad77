#include "shared_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace stand_in {
namespace {
constexpr size_t PAGE = 4096, CAPACITY = 256 << 10, MAPPED = CAPACITY + 2 * PAGE, ALIGNMENT = 64;
constexpr unsigned char FRESH = 0xFF;

// Below 4 GB: instructions of PTX name shared memory by 32 bits.
char* map_region() {
  constexpr int FLAGS = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT;
  void* at = mmap(nullptr, MAPPED, PROT_NONE, FLAGS, -1, 0);
  if (at == MAP_FAILED) abort();
  char* mapped = static_cast<char*>(at);
  mprotect(mapped + PAGE, CAPACITY, PROT_READ | PROT_WRITE);
  return mapped;
}

}  // namespace

char* SharedMemory::Region::start() const { return mapped + PAGE + CAPACITY - bytes; }

SharedMemory::~SharedMemory() {
  for (const Region& region : regions_) munmap(region.mapped, MAPPED);
}

char* SharedMemory::place(size_t bytes) {
  if (used_ == regions_.size()) regions_.push_back({map_region(), 0, 0});
  Region& region = regions_[used_++];
  region.wanted = bytes;
  region.bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return region.start();
}

void SharedMemory::begin_launch(const KernelEntry& kernel, size_t dynamic_bytes) {
  used_ = 0;
  starts_.clear();
  for (unsigned n = 0; n < kernel.shared_count; ++n)
    starts_.push_back(kernel.shared_bytes[n] ? place(kernel.shared_bytes[n]) : nullptr);
  starts_.push_back(place(dynamic_bytes));
}

void SharedMemory::begin_block() {
  for (size_t n = 0; n < used_; ++n) memset(regions_[n].start(), FRESH, regions_[n].bytes);
}

bool SharedMemory::is_intact() const {
  for (size_t n = 0; n < used_; ++n)
    for (size_t at = regions_[n].wanted; at < regions_[n].bytes; ++at)
      if ((unsigned char)regions_[n].start()[at] != FRESH) return false;
  return true;
}

}  // namespace stand_in
