#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "errors.h"
#include "machine.h"

namespace stand_in {
namespace {

constexpr size_t PAGE = 4096, ARENA = (size_t)1 << 40, ALIGNMENT = 256;
constexpr unsigned char CANARY = 0xA5, FRESH = 0xFF;

struct Allocation {
  int device;
  size_t bytes, first_page, pages;  // offsets in the arena
};

// One file, mapped twice: where the device's addresses are, which only kernels may use and only
// while they run; and where copies find it, at addresses that nobody is told.
char *device_view, *host_view;
int file = -1;
size_t top = 16 * PAGE;  // addresses are never used again: freed memory stays gone
size_t used[MAX_DEVICES];
std::map<size_t, Allocation> allocations;  // by the offset of their first byte
std::map<void*, size_t> pinned;            // memory of the host, and its bytes
int shown_device = -1;
const std::string& canaries() {
  static const std::string page(PAGE, (char)CANARY);
  return page;
}

bool map_arena() {
  if (device_view) return true;
  file = memfd_create("cuda-stand-in", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, ARENA)) return false;
  const int flags = MAP_SHARED | MAP_NORESERVE;
  void* device = mmap(nullptr, ARENA, PROT_NONE, flags, file, 0);
  void* host = mmap(nullptr, ARENA, PROT_READ | PROT_WRITE, flags, file, 0);
  if (device == MAP_FAILED || host == MAP_FAILED) return false;
  madvise(device, ARENA, MADV_DONTDUMP);
  madvise(host, ARENA, MADV_DONTDUMP);
  device_view = static_cast<char*>(device);
  host_view = static_cast<char*>(host);
  return true;
}

void protect(const Allocation& held, int protection) {
  mprotect(device_view + held.first_page * PAGE, held.pages * PAGE, protection);
}

bool is_intact(size_t start, const Allocation& held) {
  const size_t begin = held.first_page * PAGE, end = start + held.bytes;
  const size_t last = begin + held.pages * PAGE;
  return !memcmp(host_view + begin, canaries().data(), start - begin) &&
         !memcmp(host_view + end, canaries().data(), last - end);
}

}  // namespace

int allocate(int device, void** at, size_t bytes) {
  *at = nullptr;
  if (!map_arena() || used[device] + bytes > device_memory()) return OUT_OF_MEMORY;
  if (!bytes) return OK;
  const size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const size_t pages = (padded + PAGE - 1) / PAGE;
  if (top + (pages + 1) * PAGE > ARENA) return OUT_OF_MEMORY;
  const size_t start = top + pages * PAGE - padded;
  memset(host_view + top, CANARY, start - top);
  memset(host_view + start, FRESH, bytes);
  memset(host_view + start + bytes, CANARY, padded - bytes);
  const Allocation made{device, bytes, top / PAGE, pages};
  allocations[start] = made;
  if (shown_device == device) protect(made, PROT_READ | PROT_WRITE);
  top += (pages + 1) * PAGE;  // a page between two that is never there
  used[device] += bytes;
  *at = device_view + start;
  return OK;
}

bool release(void* at) {
  auto found = is_device_address(at) ? allocations.find(static_cast<char*>(at) - device_view)
                                     : allocations.end();
  if (found == allocations.end()) return false;
  const Allocation gone = found->second;
  protect(gone, PROT_NONE);
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, gone.first_page * PAGE,
            gone.pages * PAGE);
  used[gone.device] -= gone.bytes;
  allocations.erase(found);
  return true;
}

size_t used_memory(int device) { return used[device]; }

bool is_device_address(const void* at) {
  const char* address = static_cast<const char*>(at);
  return device_view && address >= device_view && address < device_view + ARENA;
}

char* backing(const void* at, size_t bytes) {
  if (!is_device_address(at)) return nullptr;
  const size_t offset = static_cast<const char*>(at) - device_view;
  auto found = allocations.upper_bound(offset);
  if (found == allocations.begin()) return nullptr;
  --found;
  return offset + bytes <= found->first + found->second.bytes ? host_view + offset : nullptr;
}

int allocate_pinned(void** at, size_t bytes) {
  *at = nullptr;
  if (posix_memalign(at, PAGE, bytes ? bytes : 1)) return OUT_OF_MEMORY;
  pinned[*at] = bytes;
  return OK;
}

bool release_pinned(void* at) {
  if (!pinned.erase(at)) return false;
  free(at);
  return true;
}

bool is_pinned(const void* at) {
  auto next = pinned.upper_bound(const_cast<void*>(at));
  if (next == pinned.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  return static_cast<const char*>(at) < static_cast<const char*>(start) + bytes;
}

void show_memory(int device) {
  if (shown_device == device) return;
  hide_memory();
  for (const auto& [start, held] : allocations)
    if (held.device == device) protect(held, PROT_READ | PROT_WRITE);
  shown_device = device;
}

void hide_memory() {
  if (shown_device < 0) return;
  for (const auto& [start, held] : allocations)
    if (held.device == shown_device) protect(held, PROT_NONE);
  shown_device = -1;
}

size_t find_overrun(int device) {
  for (const auto& [start, held] : allocations)
    if (held.device == device && !is_intact(start, held)) return held.bytes;
  return 0;
}

std::string describe_address(uintptr_t at) {
  if (!is_device_address(reinterpret_cast<void*>(at)))
    return at < 65536 ? "near null" : "no memory of a device";
  const size_t offset = reinterpret_cast<char*>(at) - device_view;
  auto next = allocations.upper_bound(offset);
  if (next == allocations.begin()) return "before the first allocation";
  const auto& [start, held] = *std::prev(next);
  char text[200];
  if (offset < start + held.bytes)
    snprintf(text, sizeof text, "byte %zu of an allocation of %zu on device %d", offset - start,
             held.bytes, held.device);
  else
    snprintf(text, sizeof text,
             "%zu bytes behind the end of an allocation of %zu, or in a freed one",
             offset - start - held.bytes, held.bytes);
  return text;
}

}  // namespace stand_in
