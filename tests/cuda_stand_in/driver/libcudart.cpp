// libcudart.so.13: the runtime's names over what libcuda.so.1 does.
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "errors.h"
#include "machine.h"

using namespace stand_in;

namespace {

// The beginning of cudaDeviceProp of CUDA 13, which is all that TVM reads.
struct Properties {
  char name[256], uuid[16], luid[8];
  unsigned luid_mask;
  size_t memory, shared_per_block;
  int registers_per_block, warp;
  size_t pitch;
  int threads_per_block, max_block[3], max_grid[3];
  size_t constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors;
};
constexpr size_t PROPERTIES_BYTES = 1008;

int check_device(int device) {
  if (!device_count()) return NO_DEVICE;
  return device < 0 || device >= device_count() ? INVALID_DEVICE : OK;
}

}  // namespace

extern "C" {

int cudaGetDeviceCount(int* count) {
  *count = device_count();
  return remember(*count ? standing_error(0) : NO_DEVICE);
}
int cudaSetDevice(int device) { return remember(use_device(device)); }
int cudaGetDevice(int* device) {
  *device = current_device();
  return remember(device_count() ? standing_error() : NO_DEVICE);
}
int cudaDeviceGetAttribute(int* value, int which, int device) {
  if (const int error = check_device(device)) return remember(error);
  *value = attribute(which);
  return OK;
}
int cudaGetDeviceProperties(Properties* found, int device) {
  if (const int error = check_device(device)) return remember(error);
  memset(static_cast<void*>(found), 0, PROPERTIES_BYTES);
  snprintf(found->name, sizeof found->name, "%s", device_name().c_str());
  found->memory = device_memory();
  found->shared_per_block = SHARED_DEFAULT;
  found->registers_per_block = (int)REGISTERS_SM;
  found->warp = (int)WARP;
  found->threads_per_block = (int)THREADS_BLOCK;
  for (int n = 0; n < 3; ++n) {
    found->max_block[n] = attribute(2 + n);
    found->max_grid[n] = attribute(5 + n);
  }
  found->major = attribute(75);
  found->minor = attribute(76);
  found->multiprocessors = attribute(16);
  return remember(standing_error(device));
}
int cudaDeviceSynchronize() { return remember(synchronize_device()); }

int cudaMalloc(void** at, size_t bytes) { return remember(allocate_device(at, bytes)); }
int cudaFree(void* at) { return remember(free_device(at)); }
int cudaMallocHost(void** at, size_t bytes) { return remember(allocate_host(at, bytes)); }
int cudaFreeHost(void* at) { return remember(free_host(at)); }
int cudaMemGetInfo(size_t* free, size_t* total) { return remember(memory_info(free, total)); }
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Handle stream) {
  return remember(copy(to, from, bytes, kind, stream));
}
int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, Handle stream) {
  constexpr int ON_DEVICE = 3;
  return remember(copy(to, from, bytes, ON_DEVICE, stream));
}
int cudaMemsetAsync(void* at, int value, size_t bytes, Handle stream) {
  return remember(fill(at, value, bytes, stream));
}

int cudaStreamCreate(Handle* stream) { return remember(create_stream(stream, 0)); }
int cudaStreamCreateWithFlags(Handle* stream, unsigned flags) {
  return remember(create_stream(stream, flags));
}
int cudaStreamDestroy(Handle stream) { return remember(destroy_stream(stream)); }
int cudaStreamSynchronize(Handle stream) { return remember(synchronize_stream(stream)); }
int cudaStreamWaitEvent(Handle stream, Handle event, unsigned) {
  return remember(wait_for_event(stream, event));
}
int cudaStreamBeginCapture(Handle stream, int mode) {
  return remember(begin_capture(stream, mode));
}
int cudaStreamEndCapture(Handle stream, Handle* graph) {
  return remember(end_capture(stream, graph));
}

int cudaEventCreate(Handle* event) { return remember(create_event(event)); }
int cudaEventDestroy(Handle event) { return remember(destroy_event(event)); }
int cudaEventRecord(Handle event, Handle stream) { return remember(record_event(event, stream)); }
int cudaEventSynchronize(Handle event) { return remember(synchronize_event(event)); }
int cudaEventQuery(Handle event) { return remember(query_event(event)); }
int cudaEventElapsedTime(float* milliseconds, Handle first, Handle second) {
  return remember(elapsed_ms(milliseconds, first, second));
}

int cudaGraphInstantiate(Handle* executable, Handle graph, unsigned long long) {
  return remember(instantiate_graph(executable, graph));
}
int cudaGraphLaunch(Handle executable, Handle stream) {
  return remember(launch_graph(executable, stream));
}
int cudaGraphDestroy(Handle graph) { return remember(destroy_graph(graph)); }
int cudaGraphExecDestroy(Handle executable) { return remember(destroy_graph(executable)); }

int cudaGetLastError() { return last_error(true); }
int cudaPeekAtLastError() { return last_error(false); }
const char* cudaGetErrorName(int error) { return runtime_name(error); }
const char* cudaGetErrorString(int error) { return description(error); }
}
