// Memory of the devices. An allocation ends at a page that is not there; the host cannot touch it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace stand_in {

int allocate(int device, void** at, size_t bytes);  // OK or OUT_OF_MEMORY
bool release(void* at);                             // false where nothing begins there
size_t used_memory(int device);

bool is_device_address(const void* at);
// Where the host finds `bytes` bytes of one allocation; null where they do not lie in one.
char* backing(const void* at, size_t bytes);

int allocate_pinned(void** at, size_t bytes);
bool release_pinned(void* at);
bool is_pinned(const void* at);

// Kernels of a device see its memory between these two, and nobody else's.
void show_memory(int device);
void hide_memory();

// Bytes of the first allocation whose neighbourhood was written to; 0 where all are as they were.
size_t find_overrun(int device);
std::string describe_address(uintptr_t at);

}  // namespace stand_in
