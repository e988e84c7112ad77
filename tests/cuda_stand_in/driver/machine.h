// The devices that there are, and what the environment says of them. Every setting is a variable
// NVIDIA_STAND_IN_<NAME>, because variables of that prefix reach all processes of the product.
#pragma once
#include <stddef.h>

#include <string>

namespace stand_in {

constexpr int MAX_DEVICES = 16;
constexpr size_t KILOBYTE = 1024;
constexpr size_t SHARED_DEFAULT = 48 * KILOBYTE;  // of a block, without asking for more
constexpr size_t SHARED_SM = 228 * KILOBYTE;      // of a multiprocessor
constexpr size_t SHARED_RESERVED = 1 * KILOBYTE;  // of each block, by the system
constexpr size_t REGISTERS_SM = 65536;
constexpr size_t THREADS_SM = 2048, THREADS_BLOCK = 1024, BLOCKS_SM = 32, WARP = 32;

long setting(const char* name, long otherwise);

int device_count();  // that CUDA_VISIBLE_DEVICES lets this process see
int capability();    // such as 90
unsigned multiprocessors();
unsigned cores();  // threads of the system that run blocks
size_t device_memory();
size_t shared_opt_in();  // of a block, where it is asked for
std::string device_name();
// Picoseconds that a step takes; 0 where a device is as fast as the CPU.
long pace();
int attribute(int which);  // 0 where it is not known

// Counts a launch, of all processes together, and gives the error that it ends with: 999 once the
// device is lost (LOST_AFTER), or what the file of counters says.
int count_launch(int device);
bool is_lost(int device);

void say(const std::string& what);    // on stderr, where failures are read
void trace(const std::string& what);  // only with NVIDIA_STAND_IN_TRACE
bool is_traced();

}  // namespace stand_in
