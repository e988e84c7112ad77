// half and bfloat16: the compiler's own half, and a bfloat16 that is rounded to nearest even.
#pragma once
#include "arithmetic.h"
#include "threads.h"

#define __CUDA_FP16_H__
#define __CUDA_BF16_H__
typedef _Float16 half;
typedef half __half;

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  template <class T,
            class = std::enable_if_t<std::is_arithmetic<T>::value || std::is_same<T, half>::value>>
  __nv_bfloat16(T value) {
    const float wide = (float)value;
    const unsigned x = __float_as_uint(wide);
    bits = wide != wide ? 0x7fff : (unsigned short)((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
  operator float() const { return __uint_as_float((unsigned)bits << 16); }
  __nv_bfloat16& operator+=(__nv_bfloat16 other) { return *this = (float)*this + (float)other; }
  __nv_bfloat16& operator-=(__nv_bfloat16 other) { return *this = (float)*this - (float)other; }
  __nv_bfloat16& operator*=(__nv_bfloat16 other) { return *this = (float)*this * (float)other; }
  __nv_bfloat16& operator/=(__nv_bfloat16 other) { return *this = (float)*this / (float)other; }
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat16 bfloat16;

#define STAND_IN_BFLOAT_OPERATOR(op)                                          \
  static inline __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) { \
    return __nv_bfloat16((float)a op(float) b);                               \
  }
STAND_IN_BFLOAT_OPERATOR(+)
STAND_IN_BFLOAT_OPERATOR(-)
STAND_IN_BFLOAT_OPERATOR(*)
STAND_IN_BFLOAT_OPERATOR(/)
#undef STAND_IN_BFLOAT_OPERATOR
#define STAND_IN_BFLOAT_COMPARISON(op) \
  static inline bool operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a op(float) b; }
STAND_IN_BFLOAT_COMPARISON(<)
STAND_IN_BFLOAT_COMPARISON(>)
STAND_IN_BFLOAT_COMPARISON(<=)
STAND_IN_BFLOAT_COMPARISON(>=)
STAND_IN_BFLOAT_COMPARISON(==)
STAND_IN_BFLOAT_COMPARISON(!=)
#undef STAND_IN_BFLOAT_COMPARISON
static inline __nv_bfloat16 operator-(__nv_bfloat16 a) { return __nv_bfloat16(-(float)a); }

struct alignas(4) half2 {
  half x, y;
  half2() = default;
  half2(half x, half y) : x(x), y(y) {}
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) : x(x), y(y) {}
};
typedef half2 __half2;
typedef __nv_bfloat162 nv_bfloat162;
static inline half2 make_half2(half x, half y) { return {x, y}; }
static inline half2 __halves2half2(half x, half y) { return {x, y}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

static inline half __float2half(float x) { return (half)x; }
static inline half __float2half_rn(float x) { return (half)x; }
static inline float __half2float(half x) { return (float)x; }
static inline half __ushort2half_rn(unsigned short x) { return (half)x; }
static inline unsigned short __half_as_ushort(half x) { return stand_in_bits<unsigned short>(x); }
static inline half __ushort_as_half(unsigned short x) { return stand_in_bits<half>(x); }
static inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
static inline float __bfloat162float(__nv_bfloat16 x) { return x; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 x;
  x.bits = bits;
  return x;
}

// Each operation rounds once, as on a device.
#define STAND_IN_16_BITS(T)                                                               \
  static inline T __hadd(T a, T b) { return (T)((float)a + (float)b); }                   \
  static inline T __hsub(T a, T b) { return (T)((float)a - (float)b); }                   \
  static inline T __hmul(T a, T b) { return (T)((float)a * (float)b); }                   \
  static inline T __hdiv(T a, T b) { return (T)((float)a / (float)b); }                   \
  static inline T __hfma(T a, T b, T c) { return (T)fmaf((float)a, (float)b, (float)c); } \
  static inline T __hneg(T a) { return (T)(-(float)a); }                                  \
  static inline T __habs(T a) { return (T)fabsf((float)a); }                              \
  static inline T __hmax(T a, T b) { return (T)fmaxf((float)a, (float)b); }               \
  static inline T __hmin(T a, T b) { return (T)fminf((float)a, (float)b); }               \
  static inline T __hmax_nan(T a, T b) { return (T)stand_in_max_nan((float)a, (float)b); } \
  static inline T __hmin_nan(T a, T b) { return (T)stand_in_min_nan((float)a, (float)b); } \
  static inline bool __hlt(T a, T b) { return (float)a < (float)b; }                      \
  static inline bool __hgt(T a, T b) { return (float)a > (float)b; }                      \
  static inline bool __hle(T a, T b) { return (float)a <= (float)b; }                     \
  static inline bool __hge(T a, T b) { return (float)a >= (float)b; }                     \
  static inline bool __heq(T a, T b) { return (float)a == (float)b; }                     \
  static inline bool __hne(T a, T b) { return (float)a != (float)b; }                     \
  static inline bool __hisnan(T a) { return (float)a != (float)a; }                       \
  static inline bool __hisinf(T a) { return isinf((float)a); }                            \
  static inline T hexp(T x) { return (T)expf((float)x); }                                 \
  static inline T hexp2(T x) { return (T)exp2f((float)x); }                               \
  static inline T hexp10(T x) { return (T)exp10f((float)x); }                             \
  static inline T hlog(T x) { return (T)logf((float)x); }                                 \
  static inline T hlog2(T x) { return (T)log2f((float)x); }                               \
  static inline T hlog10(T x) { return (T)log10f((float)x); }                             \
  static inline T hsqrt(T x) { return (T)sqrtf((float)x); }                               \
  static inline T hrsqrt(T x) { return (T)(1.0f / sqrtf((float)x)); }                     \
  static inline T hrcp(T x) { return (T)(1.0f / (float)x); }                              \
  static inline T hsin(T x) { return (T)sinf((float)x); }                                 \
  static inline T hcos(T x) { return (T)cosf((float)x); }                                 \
  static inline T htanh(T x) { return (T)tanhf((float)x); }                               \
  static inline T hfloor(T x) { return (T)floorf((float)x); }                             \
  static inline T hceil(T x) { return (T)ceilf((float)x); }                               \
  static inline T htrunc(T x) { return (T)truncf((float)x); }                             \
  static inline T hrint(T x) { return (T)rintf((float)x); }
STAND_IN_16_BITS(half)
STAND_IN_16_BITS(__nv_bfloat16)
#undef STAND_IN_16_BITS
