// CUDA C for a C++ compiler of CPUs: the words of the language, and the vectors.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "../../../driver/kernel_abi.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define __assume(condition) ((void)0)

static constexpr int warpSize = 32;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Every access to a vector in a text goes through this: a CPU takes misaligned ones.
template <class T>
static inline T* stand_in_vector(const volatile void* at) {
  if ((uintptr_t)at % alignof(T)) stand_in_trap(716, "a misaligned address");
  return (T*)at;
}

#define STAND_IN_VECTORS(scalar, name, bytes1, bytes2, bytes4)                             \
  struct alignas(bytes1) name##1 { scalar x; };                                            \
  struct alignas(bytes2) name##2 { scalar x, y; };                                         \
  struct name##3 { scalar x, y, z; };                                                      \
  struct alignas(bytes4) name##4 { scalar x, y, z, w; };                                   \
  static inline name##1 make_##name##1(scalar x) { return {x}; }                           \
  static inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }              \
  static inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) {           \
    return {x, y, z, w};                                                                   \
  }
STAND_IN_VECTORS(signed char, char, 1, 2, 4)
STAND_IN_VECTORS(unsigned char, uchar, 1, 2, 4)
STAND_IN_VECTORS(short, short, 2, 4, 8)
STAND_IN_VECTORS(unsigned short, ushort, 2, 4, 8)
STAND_IN_VECTORS(int, int, 4, 8, 16)
STAND_IN_VECTORS(unsigned int, uint, 4, 8, 16)
STAND_IN_VECTORS(long, long, 8, 16, 16)
STAND_IN_VECTORS(unsigned long, ulong, 8, 16, 16)
STAND_IN_VECTORS(long long, longlong, 8, 16, 16)
STAND_IN_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
STAND_IN_VECTORS(float, float, 4, 8, 16)
STAND_IN_VECTORS(double, double, 8, 16, 16)
#undef STAND_IN_VECTORS
