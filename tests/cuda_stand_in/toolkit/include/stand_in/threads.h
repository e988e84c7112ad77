// What the threads of a block, and the lanes of a warp, do with each other; and atomics.
#pragma once
#include "language.h"

// What a thread counts in a register, and leaves to its launch when it ends.
struct StandInSteps {
  uint64_t count = 0;
  __attribute__((always_inline)) ~StandInSteps() { stand_in_steps += count; }
};

static inline void __syncthreads() { stand_in_wait_for_block(0, 0); }
static inline void __barrier_sync(unsigned barrier) { stand_in_wait_for_block(barrier, 0); }
static inline void __barrier_sync_count(unsigned barrier, unsigned count) {
  stand_in_wait_for_block(barrier, count);
}
static inline void __syncwarp(unsigned = 0xffffffffu) { stand_in_wait_for_warp(); }
static inline unsigned __activemask() { return stand_in_live_lanes(); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline long long clock64() { return stand_in_clock(); }
static inline long long clock() { return stand_in_clock(); }
static inline void __nanosleep(unsigned) { stand_in_clock(); }
static inline void __trap() { stand_in_trap(719, "__trap()"); }
template <class T>
static inline T __ldg(const T* at) {
  return *at;
}

// The value of another lane; one's own where `from` is not alive, or outside of the width.
template <class T>
static inline T stand_in_shuffle(T value, int from, bool is_outside) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 64 bits");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  stand_in_publish(bits);
  stand_in_wait_for_warp();
  bool is_there = false;
  const uint64_t other = stand_in_published((unsigned)from, &is_there);
  if (!is_outside && is_there) memcpy(&value, &other, sizeof value);
  stand_in_wait_for_warp();  // nobody publishes again before all have read
  return value;
}
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const int own = stand_in_lane();
  return stand_in_shuffle(value, own / width * width + (lane & (width - 1)), false);
}
template <class T>
static inline T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
  const int own = stand_in_lane(), from = own + (int)by;
  return stand_in_shuffle(value, from, from / width != own / width);
}
template <class T>
static inline T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
  const int own = stand_in_lane(), from = own - (int)by;
  return stand_in_shuffle(value, from, from < own / width * width);
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T value, int with, int width = 32) {
  const int own = stand_in_lane(), from = own ^ with;
  return stand_in_shuffle(value, from, from / width > own / width);
}
static inline unsigned __ballot_sync(unsigned mask, int is_set) {
  stand_in_publish(is_set != 0);
  stand_in_wait_for_warp();
  unsigned found = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bool is_there = false;
    const uint64_t value = stand_in_published(lane, &is_there);
    if (is_there && value && (mask >> lane & 1)) found |= 1u << lane;
  }
  stand_in_wait_for_warp();
  return found;
}
static inline int __any_sync(unsigned mask, int is_set) { return __ballot_sync(mask, is_set) != 0; }
static inline int __all_sync(unsigned mask, int is_set) {
  return __ballot_sync(mask, !is_set) == 0;
}

// `change` gives the new value of what is there; the old one comes back.
template <class T, class F>
static inline T stand_in_exchange(T* at, F change) {
  T before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do after = change(before);
  while (
      !__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}
template <class T, class U>
static inline T atomicAdd(T* at, U more) {
  return stand_in_exchange(at, [&](T now) { return (T)(now + (T)more); });
}
template <class T, class U>
static inline T atomicMax(T* at, U value) {
  return stand_in_exchange(at, [&](T now) { return now < (T)value ? (T)value : now; });
}
template <class T, class U>
static inline T atomicMin(T* at, U value) {
  return stand_in_exchange(at, [&](T now) { return now > (T)value ? (T)value : now; });
}
template <class T>
static inline T atomicExch(T* at, T value) {
  return stand_in_exchange(at, [&](T) { return value; });
}
template <class T>
static inline T atomicCAS(T* at, T expected, T value) {
  __atomic_compare_exchange(at, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
