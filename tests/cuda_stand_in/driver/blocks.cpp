#include "blocks.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "errors.h"
#include "faults.h"
#include "fibers.h"
#include "machine.h"
#include "shared_memory.h"

__thread stand_in::Index3 threadIdx, blockIdx, blockDim, gridDim;
__thread uint64_t stand_in_steps;

namespace stand_in {
namespace {

constexpr int BARRIERS = 16;
constexpr uint64_t STEPS_OF_A_WAIT = 100;
// What a thread of a block waits for: the number of a barrier, or one of these.
constexpr int NOTHING = -1, ITS_END = -2, ITS_WARP = -3;

std::atomic<bool> is_stopping;  // one block has failed: the others need not go on

struct Thread {
  void* stack;
  int waits_for;
  unsigned needed;  // how many must come to the barrier; 0 for all that are alive
  uint64_t published;
};

Index3 place_in(uint64_t number, const Index3& extent) {
  return {(unsigned)(number % extent.x), (unsigned)(number / extent.x % extent.y),
          (unsigned)(number / extent.x / extent.y)};
}
uint64_t count_of(const Index3& extent) { return (uint64_t)extent.x * extent.y * extent.z; }

// A thread of the system, which runs one block after the other.
class Worker {
 public:
  void begin_launch(const Launch* launch) {
    launch_ = launch;
    catcher.error = 0;
    catcher.address = 0;
    shared_.begin_launch(*launch->kernel, launch->dynamic_shared_bytes);
  }
  void run_block(uint64_t number);
  void run_thread();
  void wait(int what, unsigned needed);
  unsigned live_lanes() const;

  const Launch& launch() const { return *launch_; }
  Thread& current() { return threads_[now_]; }
  unsigned now() const { return now_; }
  const Thread* lane(unsigned lane) const {
    const unsigned at = now_ / WARP * WARP + lane;
    return lane < WARP && at < threads_.size() && threads_[at].waits_for != ITS_END ? &threads_[at]
                                                                                    : nullptr;
  }
  const SharedMemory& shared() const { return shared_; }

  Catcher catcher;

 private:
  bool release_waiting();
  void require_intact_memory() const;
  void enter(unsigned number) {
    now_ = number;
    threadIdx = place_in(number, launch_->block);
  }

  const Launch* launch_ = nullptr;
  SharedMemory shared_;
  Stacks stacks_;
  std::vector<Thread> threads_;
  void* scheduler_ = nullptr;
  unsigned now_ = 0;
};

thread_local Worker* worker;

void begin_thread() { worker->run_thread(); }

void Worker::run_thread() {
  launch_->kernel->run_thread(launch_->arguments);
  wait(ITS_END, 0);
  __builtin_trap();
}

void Worker::wait(int what, unsigned needed) {
  Thread& own = current();
  stand_in_steps += STEPS_OF_A_WAIT;
  own.waits_for = what;
  own.needed = needed;
  stand_in_switch_stack(&own.stack, scheduler_);
  if (is_stopping.load(std::memory_order_relaxed)) escape(0, "");
}

unsigned Worker::live_lanes() const {
  unsigned mask = 0;
  for (unsigned n = 0; n < WARP; ++n)
    if (lane(n)) mask |= 1u << n;
  return mask;
}

void Worker::run_block(uint64_t number) {
  blockIdx = place_in(number, launch_->grid);
  blockDim = launch_->block;
  gridDim = launch_->grid;
  shared_.begin_block();
  const unsigned count = (unsigned)count_of(launch_->block);
  if (!launch_->kernel->threads_wait) {
    for (unsigned n = 0; n < count; ++n) {
      enter(n);
      launch_->kernel->run_thread(launch_->arguments);
    }
    require_intact_memory();
    return;
  }
  stacks_.reserve(count);
  threads_.resize(count);
  for (unsigned n = 0; n < count; ++n)
    threads_[n] = {stacks_.fresh(n, begin_thread), NOTHING, 0, 0};
  do {
    for (unsigned n = 0; n < count; ++n) {
      if (threads_[n].waits_for != NOTHING) continue;
      enter(n);
      stand_in_switch_stack(&scheduler_, threads_[n].stack);
    }
    if (is_stopping.load(std::memory_order_relaxed)) return;
  } while (release_waiting());
  for (unsigned n = 0; n < count; ++n) {
    if (threads_[n].waits_for == ITS_END) continue;
    enter(n);
    escape(LAUNCH_TIMEOUT, "threads of a block wait for each other at different barriers");
  }
  require_intact_memory();
}

void Worker::require_intact_memory() const {
  if (!shared_.is_intact()) escape(ILLEGAL_ADDRESS, "a write behind a variable in shared memory");
}

// Lets those go on that wait for nobody any more. False where nobody can: all have ended, or hang.
bool Worker::release_waiting() {
  unsigned alive = 0, freed = 0, waiting[BARRIERS] = {}, needed[BARRIERS] = {};
  for (const Thread& thread : threads_) {
    alive += thread.waits_for != ITS_END;
    if (thread.waits_for < 0) continue;
    ++waiting[thread.waits_for];
    needed[thread.waits_for] = thread.needed;
  }
  for (Thread& thread : threads_) {
    // Whoever could run has run, so that nobody else of the warp will come.
    bool is_free = thread.waits_for == ITS_WARP;
    if (thread.waits_for >= 0) {
      const unsigned wanted = needed[thread.waits_for] ? needed[thread.waits_for] : alive;
      is_free = waiting[thread.waits_for] >= wanted;
    }
    if (!is_free) continue;
    thread.waits_for = NOTHING;
    ++freed;
  }
  return freed > 0;
}

// The workers, which take blocks of one launch at a time.
class Pool {
 public:
  Fault run(const Launch& launch);

 private:
  void work();
  void take_blocks(Worker& own, uint64_t number);

  std::mutex lock_;
  std::condition_variable has_begun_, has_ended_;
  size_t threads_ = 0;
  const Launch* launch_ = nullptr;
  uint64_t round_ = 0, blocks_ = 0;
  std::atomic<uint64_t> next_{0};
  unsigned wanted_ = 0, taken_ = 0, busy_ = 0;
  Fault fault_;
};

void Pool::work() {
  Worker own;
  worker = &own;
  use_catcher(&own.catcher);
  uint64_t seen = 0;
  for (;;) {
    std::unique_lock<std::mutex> hold(lock_);
    has_begun_.wait(hold, [&] { return round_ != seen; });
    seen = round_;
    if (taken_ == wanted_) continue;
    const uint64_t first = taken_++;
    ++busy_;
    hold.unlock();
    own.begin_launch(launch_);
    stand_in_steps = 0;
    take_blocks(own, first);
    hold.lock();
    fault_.steps += stand_in_steps;
    if (--busy_ == 0 && taken_ == wanted_) has_ended_.notify_all();
  }
}

void Pool::take_blocks(Worker& own, uint64_t number) {
  if (sigsetjmp(own.catcher.escape, 0) == 0) {
    own.catcher.is_armed = true;
    if (launch_->is_cooperative) {
      own.run_block(number);
    } else {
      while (!is_stopping.load(std::memory_order_relaxed) &&
             (number = next_.fetch_add(1)) < blocks_)
        own.run_block(number);
    }
    own.catcher.is_armed = false;
    return;
  }
  own.catcher.is_armed = false;  // a kernel failed, or escaped because another one had
  is_stopping = true;
  std::lock_guard<std::mutex> hold(lock_);
  if (!fault_.error && own.catcher.error)
    fault_ = {own.catcher.error, own.catcher.why, own.catcher.address, blockIdx, threadIdx, 0};
}

Fault Pool::run(const Launch& launch) {
  install_fault_handlers();
  const uint64_t blocks = count_of(launch.grid);
  const unsigned wanted = launch.is_cooperative || blocks < cores() ? (unsigned)blocks : cores();
  std::unique_lock<std::mutex> hold(lock_);
  sigset_t all, before;  // signals to the process are for its own threads, not for these
  sigfillset(&all);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, signal);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (; threads_ < wanted; ++threads_) std::thread(&Pool::work, this).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  launch_ = &launch;
  blocks_ = blocks;
  next_ = 0;
  wanted_ = wanted;
  taken_ = busy_ = 0;
  fault_ = Fault{};
  is_stopping = false;
  ++round_;
  has_begun_.notify_all();
  has_ended_.wait(hold, [&] { return taken_ == wanted_ && busy_ == 0; });
  return fault_;
}

}  // namespace

Fault run_blocks(const Launch& launch) {
  static Pool* const pool = new Pool;  // never ends: its threads would outlive it
  return pool->run(launch);
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

void stand_in_wait_for_block(unsigned barrier, unsigned count) {
  worker->wait((int)(barrier % BARRIERS), count);
}
void stand_in_wait_for_warp() { worker->wait(ITS_WARP, 0); }
unsigned stand_in_live_lanes() { return worker->live_lanes(); }
unsigned stand_in_lane() { return worker->now() % WARP; }
void stand_in_publish(uint64_t value) { worker->current().published = value; }
uint64_t stand_in_published(unsigned lane, bool* is_there) {
  const Thread* other = worker->lane(lane);
  *is_there = other != nullptr;
  return other ? other->published : 0;
}
char* stand_in_shared(unsigned variable) { return worker->shared().variable(variable); }
char* stand_in_dynamic_shared() { return worker->shared().dynamic(); }
long long stand_in_clock() {
  if (worker->launch().is_cooperative) sched_yield();  // it may spin until another block comes
  if (is_stopping.load(std::memory_order_relaxed)) escape(0, "");
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
void stand_in_trap(int error, const char* why) { escape(error, why); }
}
