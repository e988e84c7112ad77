// CUDA C on a CPU, for small kernels: a block is a thread of the system, and the threads of a block
// are contexts that run in turn, each until it must wait for others. Blocks are at work at the same
// time, so that what they tell each other through memory is tried, and not only stepped through.
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <thread>
#include <vector>

using std::max;
using std::min;
#define __global__
#define __device__
#define __noinline__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short

struct dim3 {
  unsigned int x = 1, y = 1, z = 1;
  dim3(unsigned int x, unsigned int y, unsigned int z) : x(x), y(y), z(z) {}
};
#define VECTORS(kind) \
  struct alignas(2 * sizeof(kind)) kind##2 { kind x, y; }; \
  struct alignas(4 * sizeof(kind)) kind##4 { kind x, y, z, w; }; \
  inline kind##2 make_##kind##2(kind x, kind y) { return {x, y}; } \
  inline kind##4 make_##kind##4(kind x, kind y, kind z, kind w) { return {x, y, z, w}; }
VECTORS(float)
VECTORS(int)
inline float __expf(float x) { return expf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }

namespace device {
constexpr int WARP = 32, STACK_BYTES = 1 << 16, RUNS = -1, ENDED = -2, IN_WARP = -3;
struct Thread { ucontext_t context; char* stack; int waits_for; float given; };
// Whether a thread waits for all of its block (0), for some by number, for its warp, or not at all.
struct Block { std::vector<Thread> threads; ucontext_t scheduler; int now; int needed[16]; };
static thread_local Block* block;
static int trapped;

inline void wait(int what) {
  Thread& own = block->threads[block->now];
  own.waits_for = what;
  swapcontext(&own.context, &block->scheduler);
  if (trapped) setcontext(&block->scheduler);
}
}  // namespace device

static thread_local dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0);
static dim3 gridDim(1, 1, 1), blockDim(1, 1, 1);

inline void __syncthreads() { device::wait(0); }
inline void __barrier_sync_count(unsigned int which, unsigned int count) {
  device::block->needed[which] = count;
  device::wait(which);
}
inline void __syncwarp(unsigned int) { device::wait(device::IN_WARP); }
inline unsigned int __activemask() { return 0xffffffffu; }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline unsigned int atomicAdd(unsigned int* at, unsigned int more) {
  return __atomic_fetch_add(at, more, __ATOMIC_RELAXED);
}
inline long long clock64() {
  static thread_local long long cycles;
  sched_yield();
  return ++cycles;
}
inline void __trap() {
  device::trapped = 1;
  setcontext(&device::block->scheduler);
}
inline float __shfl_down_sync(unsigned int, float value, int offset, int) {
  auto& threads = device::block->threads;
  const int own = device::block->now, from = own + offset;
  threads[own].given = value;
  device::wait(device::IN_WARP);
  const bool has = from / device::WARP == own / device::WARP && from < (int)threads.size();
  const float found = has ? threads[from].given : value;
  device::wait(device::IN_WARP);
  return found;
}
inline float __shfl_sync(unsigned int, float value, int lane, int) {
  auto& threads = device::block->threads;
  threads[device::block->now].given = value;
  device::wait(device::IN_WARP);
  const float found = threads[device::block->now / device::WARP * device::WARP + lane].given;
  device::wait(device::IN_WARP);
  return found;
}

namespace device {
// Lets those go on that wait for nobody any more; false where all have ended, or nobody can.
inline bool released(Block& all) {
  int waiting[16] = {}, alive = 0, freed = 0;
  for (Thread& each : all.threads) {
    alive += each.waits_for != ENDED;
    if (each.waits_for >= 0) ++waiting[each.waits_for];
  }
  all.needed[0] = alive;
  for (Thread& each : all.threads)
    if (each.waits_for >= 0 && waiting[each.waits_for] == all.needed[each.waits_for]) {
      ++freed;
      each.waits_for = RUNS;
    }
  // All that can run have run: who waits in a warp waits for nobody else of it.
  if (!freed)
    for (Thread& each : all.threads)
      if (each.waits_for == IN_WARP) {
        ++freed;
        each.waits_for = RUNS;
      }
  return freed > 0;
}

template <typename Kernel>
void start(unsigned int low, unsigned int high) {
  (*reinterpret_cast<Kernel*>((uintptr_t)high << 32 | low))();
  block->threads[block->now].waits_for = ENDED;
}

template <typename Kernel>
void run_block(Kernel kernel, int number, int count) {
  Block own{std::vector<Thread>(count), {}, 0, {}};
  block = &own;
  blockIdx.x = number;
  const uintptr_t at = (uintptr_t)&kernel;
  for (Thread& each : own.threads) {
    getcontext(&each.context);
    each.stack = (char*)malloc(STACK_BYTES);
    each.context.uc_stack.ss_sp = each.stack;
    each.context.uc_stack.ss_size = STACK_BYTES;
    each.context.uc_link = &own.scheduler;
    each.waits_for = RUNS;
    makecontext(&each.context, (void (*)())start<Kernel>, 2, (unsigned int)at,
                (unsigned int)(at >> 32));
  }
  do {
    for (own.now = 0; own.now < count && !trapped; ++own.now) {
      if (own.threads[own.now].waits_for != RUNS) continue;
      threadIdx.x = own.now;
      swapcontext(&own.scheduler, &own.threads[own.now].context);
    }
  } while (!trapped && released(own));
  for (Thread& each : own.threads) free(each.stack);
}

// Runs `blocks` of a launch of `grid`; 1 where one of them has trapped. Fewer than the grid are
// what a device does that has no room for all.
template <typename Kernel>
int launch(Kernel kernel, int grid, int blocks, int threads) {
  trapped = 0;
  gridDim.x = grid;
  blockDim.x = threads;
  std::vector<std::thread> running;
  for (int n = 0; n < blocks; ++n) running.emplace_back(run_block<Kernel>, kernel, n, threads);
  for (std::thread& each : running) each.join();
  return trapped;
}
}  // namespace device
