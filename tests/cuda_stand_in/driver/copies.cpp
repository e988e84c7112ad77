// Memory and copies, as the runtime's functions see them.
#include <string.h>

#include <string>

#include "api.h"
#include "errors.h"
#include "machine.h"
#include "memory.h"

namespace stand_in {
namespace {

constexpr int TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, BY_ADDRESS = 4;

// Where `at` can be written and read now; null where it is no memory of that kind, or too short.
char* reach(const void* at, size_t bytes, bool is_device) {
  if (is_device != is_device_address(at)) return nullptr;
  return is_device ? backing(at, bytes) : static_cast<char*>(const_cast<void*>(at));
}

}  // namespace

int allocate_device(void** at, size_t bytes) {
  Locked locked;
  *at = nullptr;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  const int error = allocate(current_device(), at, bytes);
  if (error) say("no " + std::to_string(bytes) + " bytes are left on the device");
  return error;
}

int free_device(void* at) {
  Locked locked;
  if (!at) return OK;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  run_device(current_device());
  if (const int error = standing_error()) return error;
  return release(at) ? OK : INVALID_VALUE;
}

int allocate_host(void** at, size_t bytes) {
  Locked locked;
  *at = nullptr;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  return allocate_pinned(at, bytes);
}

int free_host(void* at) {
  Locked locked;
  if (!at) return OK;
  if (const int error = standing_error()) return error;
  if (const int error = reject_unsafe_call()) return error;
  run_device(current_device());
  return release_pinned(at) ? standing_error() : (int)INVALID_VALUE;
}

int memory_info(size_t* free, size_t* total) {
  Locked locked;
  *total = device_memory();
  *free = *total - used_memory(current_device());
  return standing_error();
}

int copy(void* to, const void* from, size_t bytes, int kind, Handle stream) {
  Locked locked;
  if (const int error = standing_error()) return error;
  if (!bytes) return OK;
  const bool to_device =
      kind == BY_ADDRESS ? is_device_address(to) : kind == TO_DEVICE || kind == ON_DEVICE;
  const bool from_device =
      kind == BY_ADDRESS ? is_device_address(from) : kind == TO_HOST || kind == ON_DEVICE;
  if (!reach(to, bytes, to_device) || !reach(from, bytes, from_device)) {
    say("a copy of " + std::to_string(bytes) +
        " bytes from or to what is not memory of that kind, or shorter");
    return INVALID_VALUE;
  }
  const Work move = [=] {
    char *target = reach(to, bytes, to_device), *source = reach(from, bytes, from_device);
    if (!target || !source) {
      say("a copy of " + std::to_string(bytes) +
          " bytes from or to memory that was freed meanwhile");
      return (int)ILLEGAL_ADDRESS;
    }
    memmove(target, source, bytes);
    return (int)OK;
  };
  const Stream* into = find_stream(stream);
  if (!into) return INVALID_HANDLE;
  if (!to_device && !is_pinned(to)) return submit_and_wait(stream, move);
  if (from_device || is_pinned(from) || into->capture) return submit(stream, move);
  // From pageable memory the driver takes the bytes at once, whenever they arrive.
  auto taken = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  return submit(stream, [=] {
    char* target = reach(to, bytes, true);
    if (!target) return (int)ILLEGAL_ADDRESS;
    memcpy(target, taken->data(), bytes);
    return (int)OK;
  });
}

int fill(void* at, int value, size_t bytes, Handle stream) {
  Locked locked;
  if (const int error = standing_error()) return error;
  if (!bytes) return OK;
  if (!reach(at, bytes, true)) return INVALID_VALUE;
  return submit(stream, [=] {
    char* target = reach(at, bytes, true);
    if (!target) return (int)ILLEGAL_ADDRESS;
    memset(target, value, bytes);
    return (int)OK;
  });
}

}  // namespace stand_in
