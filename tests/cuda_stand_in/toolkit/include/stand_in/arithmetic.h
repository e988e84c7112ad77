// Arithmetic that CUDA has and C++ has not. Fast versions are the exact ones: what comes out is
// nearer to the truth than on a device, so tolerances of tests hold there if they are not tight.
#pragma once
#include "language.h"

static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value>>
static inline std::common_type_t<A, B> max(A a, B b) {
  typedef std::common_type_t<A, B> T;
  if constexpr (std::is_floating_point<T>::value) return fmax((T)a, (T)b);
  return (T)a > (T)b ? (T)a : (T)b;
}
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value>>
static inline std::common_type_t<A, B> min(A a, B b) {
  typedef std::common_type_t<A, B> T;
  if constexpr (std::is_floating_point<T>::value) return fmin((T)a, (T)b);
  return (T)a < (T)b ? (T)a : (T)b;
}
static inline float stand_in_max_nan(float a, float b) { return a > b || a != a ? a : b; }
static inline float stand_in_min_nan(float a, float b) { return a < b || a != a ? a : b; }

// Macros, because the C library has functions of some of these names.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __tanhf tanhf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline float __int2float_rn(int x) { return (float)x; }

template <class To, class From>
static inline To stand_in_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "another size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline unsigned __float_as_uint(float x) { return stand_in_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return stand_in_bits<int>(x); }
static inline float __int_as_float(int x) { return stand_in_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return stand_in_bits<float>(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }
static inline int __mulhi(int a, int b) { return (int64_t)a * b >> 32; }

static inline int __dp4a(int a, int b, int sum) {
  for (int n = 0; n < 32; n += 8) sum += (int8_t)(a >> n) * (int8_t)(b >> n);
  return sum;
}
static inline int __dp4a(char4 a, char4 b, int sum) {
  return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
