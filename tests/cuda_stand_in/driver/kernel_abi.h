// What libcuda.so.1 and the shared objects made of kernel texts agree on.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace stand_in {

struct Index3 {
  unsigned x, y, z;
};

// One `__global__` function of a text. The compiler writes a table of these behind the text.
struct KernelEntry {
  const char* name;
  void (*run_thread)(void** arguments);  // with threadIdx and the like already set
  unsigned parameter_count;
  const unsigned* parameter_bytes;
  const unsigned char* parameter_is_pointer;
  unsigned threads_wait;  // 1 where threads of a block wait for each other: each needs a stack
  unsigned max_threads;   // of __launch_bounds__
  unsigned registers;     // of a thread, estimated
  unsigned shared_count;  // variables in static shared memory of the whole text
  const unsigned* shared_bytes;  // of each; 0 for those that this kernel does not reach
};

}  // namespace stand_in

// Initial-exec storage of libcuda.so.1: read with one instruction, set before a thread goes on.
extern __thread stand_in::Index3 threadIdx __attribute__((tls_model("initial-exec")));
extern __thread stand_in::Index3 blockIdx __attribute__((tls_model("initial-exec")));
extern __thread stand_in::Index3 blockDim __attribute__((tls_model("initial-exec")));
extern __thread stand_in::Index3 gridDim __attribute__((tls_model("initial-exec")));
// Of the blocks that this thread has run in the launch: what a paced device takes its time from.
extern __thread uint64_t stand_in_steps __attribute__((tls_model("initial-exec")));

extern "C" {
void stand_in_wait_for_block(unsigned barrier, unsigned count);  // count 0: all that are alive
void stand_in_wait_for_warp();
unsigned stand_in_live_lanes();
unsigned stand_in_lane();
void stand_in_publish(uint64_t value);                       // to the other lanes of the warp
uint64_t stand_in_published(unsigned lane, bool* is_there);  // after waiting for the warp
char* stand_in_shared(unsigned variable);
char* stand_in_dynamic_shared();
long long stand_in_clock();
void stand_in_trap(int error, const char* why);
}
