// Tensor cores: `wmma`, and the instructions `mma.sync` and `ldmatrix` of PTX as TVM writes them.
//
// What a warp computes together, each lane computes for its own elements here, from the fragments
// of the others: a lane publishes where its own are, waits for the warp, reads, and waits again.
#pragma once
#include "half.h"

namespace stand_in {

constexpr int LANES = 32;

// What lane `lane` has published; a warp that is not whole has no tensor cores.
template <class T>
inline const T& of_lane(int lane) {
  bool is_there = false;
  const uint64_t at = stand_in_published((unsigned)lane, &is_there);
  if (!is_there) stand_in_trap(719, "an instruction of a warp, in a warp that is not whole");
  return *reinterpret_cast<const T*>(at);
}

}  // namespace stand_in

// A tensor core reads 10 bits of the mantissa, whatever follows them.
struct stand_in_tf32 {
  float value;
  operator float() const { return __uint_as_float(__float_as_uint(value) & 0xffffe000); }
};

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
namespace precision {
typedef stand_in_tf32 tf32;
}
static inline float __float_to_tf32(float x) {
  return x != x ? x : __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
}
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K>
struct Extent;
template <int M, int N, int K>
struct Extent<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct Extent<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct Extent<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};

// The element with number `n` of the matrix, by rows, is `x[n / 32]` of lane `n % 32`.
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment : Extent<Use, M, N, K> {
  typedef Extent<Use, M, N, K> Shape;
  static constexpr int num_elements = Shape::rows * Shape::columns / stand_in::LANES;
  T x[num_elements];
};

template <class Use, int M, int N, int K, class T, class Layout, class V>
inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& into, V value) {
  for (T& element : into.x) element = (T)value;
}

template <class F, class Visit>
inline void for_own_elements(F& of, unsigned stride, bool by_rows, Visit visit) {
  const int lane = (int)stand_in_lane();
  for (int n = 0; n < F::num_elements; ++n) {
    const int number = n * stand_in::LANES + lane;
    const int row = number / F::Shape::columns, column = number % F::Shape::columns;
    visit(of.x[n], by_rows ? row * stride + column : column * stride + row);
  }
}

// A pointer is aligned to 32 bytes, and lines to 16: all else is undefined on a device.
template <class P>
inline void require_aligned(const P* at, unsigned stride) {
  if ((uintptr_t)at % 32 || stride * sizeof(P) % 16)
    stand_in_trap(716, "a fragment in memory that is not aligned");
}

template <class Use, int M, int N, int K, class T, class Layout, class P>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& into, const P* from,
                             unsigned stride) {
  require_aligned(from, stride);
  stand_in_wait_for_warp();
  for_own_elements(into, stride, std::is_same<Layout, row_major>::value,
                   [&](T& element, unsigned at) { element = T{from[at]}; });
  stand_in_wait_for_warp();
}
template <int M, int N, int K, class T, class P>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& into, const P* from,
                             unsigned stride, layout_t layout) {
  require_aligned(from, stride);
  stand_in_wait_for_warp();
  for_own_elements(into, stride, layout == mem_row_major,
                   [&](T& element, unsigned at) { element = T{from[at]}; });
  stand_in_wait_for_warp();
}
template <int M, int N, int K, class T, class P>
inline void store_matrix_sync(P* to, const fragment<accumulator, M, N, K, T>& from,
                              unsigned stride, layout_t layout) {
  require_aligned(to, stride);
  stand_in_wait_for_warp();
  for_own_elements(from, stride, layout == mem_row_major,
                   [&](const T& element, unsigned at) { to[at] = (P)element; });
  stand_in_wait_for_warp();
}

// Products are added in float, or int, and rounded once: a device rounds no more often.
template <int M, int N, int K, class D, class A, class LayoutA, class B, class LayoutB, class C>
inline void mma_sync(fragment<accumulator, M, N, K, D>& d,
                     const fragment<matrix_a, M, N, K, A, LayoutA>& a,
                     const fragment<matrix_b, M, N, K, B, LayoutB>& b,
                     const fragment<accumulator, M, N, K, C>& c) {
  typedef std::conditional_t<std::is_integral<C>::value, int, float> Sum;
  struct Own {
    const fragment<matrix_a, M, N, K, A, LayoutA>* a;
    const fragment<matrix_b, M, N, K, B, LayoutB>* b;
  } own{&a, &b};
  stand_in_publish(reinterpret_cast<uint64_t>(&own));
  stand_in_wait_for_warp();
  const int lane = (int)stand_in_lane();
  D results[M * N / stand_in::LANES];
  for (int n = 0; n < M * N / stand_in::LANES; ++n) {
    const int number = n * stand_in::LANES + lane, row = number / N, column = number % N;
    Sum sum = (Sum)c.x[n];
    for (int k = 0; k < K; ++k) {
      const int of_a = row * K + k, of_b = k * N + column;
      sum += (Sum)stand_in::of_lane<Own>(of_a % 32).a->x[of_a / 32] *
             (Sum)stand_in::of_lane<Own>(of_b % 32).b->x[of_b / 32];
    }
    results[n] = (D)sum;
  }
  stand_in_wait_for_warp();
  for (int n = 0; n < M * N / stand_in::LANES; ++n) d.x[n] = results[n];
}

}  // namespace wmma
}  // namespace nvcuda

// Shared memory lies below 4 GB, so that an address fits into the register that PTX wants.
static inline unsigned __cvta_generic_to_shared(const void* at) {
  return (unsigned)reinterpret_cast<uintptr_t>(at);
}

// An operand of an instruction is a register of 32 bits, whatever its type is in C.
template <class T>
static inline unsigned stand_in_word(T value) {
  static_assert(sizeof(T) == 4, "a register has 32 bits");
  return stand_in_bits<unsigned>(value);
}
template <class T>
static inline void stand_in_set(T& to, unsigned word) {
  to = stand_in_bits<T>(word);
}

// `mma.sync.aligned.m<M>n<N>k<K>.row.col`: which element of which register a lane holds is as the
// PTX manual draws it, for M of 8 and 16 and N of 8.
template <int M, int K, class D, class A, class B, class C>
static inline void stand_in_ptx_mma(unsigned* d, const unsigned* a, const unsigned* b,
                                    const unsigned* c) {
  constexpr int GROUPS = M / 8, A_EACH = 4 / sizeof(A), B_EACH = 4 / sizeof(B);
  constexpr int COUNT = 2 * GROUPS;  // elements of the result in a lane
  typedef std::conditional_t<std::is_integral<A>::value, int, float> Sum;
  struct Own {
    const unsigned *a, *b;
  } own{a, b};
  stand_in_publish(reinterpret_cast<uint64_t>(&own));
  stand_in_wait_for_warp();
  const int lane = (int)stand_in_lane();
  D results[COUNT];
  for (int n = 0; n < COUNT; ++n) {
    const int row = lane / 4, group = n / 2, column = lane % 4 * 2 + n % 2;
    Sum sum = (Sum) reinterpret_cast<const C*>(c)[n];
    for (int k = 0; k < K; ++k) {
      const int a_part = k / (4 * A_EACH), a_rest = k % (4 * A_EACH);
      const int b_part = k / (4 * B_EACH), b_rest = k % (4 * B_EACH);
      const Own& left = stand_in::of_lane<Own>(row * 4 + a_rest / A_EACH);
      const Own& right = stand_in::of_lane<Own>(column * 4 + b_rest / B_EACH);
      const unsigned* a_word = left.a + a_part * GROUPS + group;
      sum += (Sum) reinterpret_cast<const A*>(a_word)[a_rest % A_EACH] *
             (Sum) reinterpret_cast<const B*>(right.b + b_part)[b_rest % B_EACH];
    }
    results[n] = (D)sum;
  }
  stand_in_wait_for_warp();
  memcpy(d, results, sizeof results);
}

// `ldmatrix.sync.aligned.m8n8.x<COUNT>[.trans].shared.b16`: eight lanes each say where the rows of
// one matrix lie.
template <int COUNT, bool IS_TRANSPOSED>
static inline void stand_in_ptx_ldmatrix(unsigned* d, unsigned address) {
  stand_in_publish(address);
  stand_in_wait_for_warp();
  const int lane = (int)stand_in_lane();
  for (int matrix = 0; matrix < COUNT; ++matrix) {
    uint16_t pair[2];
    for (int n = 0; n < 2; ++n) {
      const int row = IS_TRANSPOSED ? lane % 4 * 2 + n : lane / 4;
      const int column = IS_TRANSPOSED ? lane / 4 : lane % 4 * 2 + n;
      bool is_there = false;
      const uint64_t start = stand_in_published((unsigned)(matrix * 8 + row), &is_there);
      if (start % 16) stand_in_trap(716, "a row of a matrix that is not aligned to 16 bytes");
      pair[n] = reinterpret_cast<const uint16_t*>(start)[column];
    }
    memcpy(d + matrix, pair, sizeof pair);
  }
  stand_in_wait_for_warp();
}

// `cp.async`: copied at once, which a device may do. Waiting for it is then no work.
template <int BYTES>
static inline void stand_in_ptx_cp_async(unsigned shared, const void* global) {
  if (shared % BYTES || (uintptr_t)global % BYTES) stand_in_trap(716, "a misaligned address");
  memcpy(reinterpret_cast<void*>((uintptr_t)shared), global, BYTES);
}
