"""Tensor cores of the stand-in: what a warp multiplies is what numpy multiplies."""

import numpy as np
import pytest

from tests.cuda_stand_in.fixtures import WhatCuda
from tests.cuda_stand_in.inline_ptx import without_ptx
from tests.cuda_stand_in.programs import seen_by

pytestmark = pytest.mark.cuda_stand_in

WMMA = """
#include <mma.h>
extern "C" __global__ void __launch_bounds__(32) product(KIND* a, KIND* b, SUM* c) {
  __shared__ KIND copy[256];
  for (int i = 0; i < 8; ++i) copy[i * 32 + threadIdx.x] = a[i * 32 + threadIdx.x];
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, KIND, nvcuda::wmma::row_major> x[1];
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, KIND, nvcuda::wmma::col_major> y[1];
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, SUM> z[1];
  nvcuda::wmma::fill_fragment(z[0], 1.0f);
  nvcuda::wmma::load_matrix_sync(x[0], (&(copy[0])), 16);
  nvcuda::wmma::load_matrix_sync(y[0], b, 16);
  nvcuda::wmma::mma_sync(z[0], x[0], y[0], z[0]);
  nvcuda::wmma::store_matrix_sync(c, z[0], 16, nvcuda::wmma::mem_row_major);
}
"""
MMA = """
extern "C" __global__ void __launch_bounds__(32) product(half* a, half* b, float* c) {
  __shared__ half left[256];
  __shared__ half right[128];
  half A[8]; half B[4]; float C[4];
  for (int i = 0; i < 8; ++i) left[i * 32 + threadIdx.x] = a[i * 32 + threadIdx.x];
  for (int i = 0; i < 4; ++i) right[i * 32 + threadIdx.x] = b[i * 32 + threadIdx.x];
  for (int i = 0; i < 4; ++i) C[i] = 1.0f;
  __syncthreads();
  {
    unsigned int addr = __cvta_generic_to_shared(
        &left[(threadIdx.x % 16) * 16 + threadIdx.x / 16 * 8]);
    __asm__ __volatile__(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
      "{%0, %1, %2, %3}, [%4];\\n"
      : "=r"(((unsigned *)(A + 0))[0]), "=r"(((unsigned *)(A + 0))[1]),
        "=r"(((unsigned *)(A + 0))[2]), "=r"(((unsigned *)(A + 0))[3])
      : "r"(addr)
    );
  }
  {
    unsigned int addr = __cvta_generic_to_shared(&right[(threadIdx.x % 16) * 8]);
    __asm__ __volatile__(
      "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16"
      "{%0, %1}, [%2];\\n"
      : "=r"(((unsigned *)(B + 0))[0]), "=r"(((unsigned *)(B + 0))[1])
      : "r"(addr)
    );
  }
  {
    __asm__ __volatile__(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\\n"
      : "=f"(((float *)(C + 0))[0]), "=f"(((float *)(C + 0))[1]),
        "=f"(((float *)(C + 0))[2]), "=f"(((float *)(C + 0))[3])
      : "r"(((unsigned *)(A + 0))[0]), "r"(((unsigned *)(A + 0))[1]),
        "r"(((unsigned *)(A + 0))[2]), "r"(((unsigned *)(A + 0))[3]),
        "r"(((unsigned *)(B + 0))[0]), "r"(((unsigned *)(B + 0))[1]),
        "f"(((float *)(C + 0))[0]), "f"(((float *)(C + 0))[1]),
        "f"(((float *)(C + 0))[2]), "f"(((float *)(C + 0))[3]));
  }
  for (int i = 0; i < 4; ++i)
    c[(threadIdx.x / 4 + i / 2 * 8) * 8 + threadIdx.x % 4 * 2 + i % 2] = C[i];
}
"""
RUN = """
import ml_dtypes, numpy as np
def given(values):
    at = c.allocate(values.nbytes)
    c.copy(at, values.ctypes.data_as(c.Pointer), values.nbytes, c.TO_DEVICE)
    return at
random = np.random.default_rng(0)
a, b = (random.integers(-4, 5, size).astype(np.dtype("{kind}")) for size in ({a}, {b}))
out = np.zeros({out}, np.{sum})
into = c.allocate(out.nbytes)
assert m.launch("product", 1, 32, given(a), given(b), into) == 0
assert c.copy(out.ctypes.data_as(c.Pointer), into, out.nbytes, c.TO_HOST) == 0
seen = [each.astype(float).tolist() for each in (a, b, out)]
"""


@pytest.mark.parametrize(
    ("kind", "total", "kind_of_numpy", "total_of_numpy"),
    [
        ("half", "float", "float16", "float32"),
        ("half", "half", "float16", "float16"),
        ("__nv_bfloat16", "float", "bfloat16", "float32"),
        ("signed char", "int", "int8", "int32"),
    ],
)
def test_a_warp_multiplies_fragments(
    cuda_stand_in: WhatCuda, kind: str, total: str, kind_of_numpy: str, total_of_numpy: str
) -> None:
    text = WMMA.replace("KIND", kind).replace("SUM", total)
    size = "(16, 16)"
    program = RUN.format(kind=kind_of_numpy, sum=total_of_numpy, a=size, b=size, out=size)
    a, b, out = (np.array(each) for each in seen_by(cuda_stand_in(), text, program))
    np.testing.assert_array_equal(out, a @ b.T + 1)


@pytest.mark.parametrize(("at", "stride"), [("8", "16"), ("0", "17")])
def test_a_fragment_lies_where_a_device_can_load_it(
    cuda_stand_in: WhatCuda, at: str, stride: str
) -> None:
    """At 32 bytes, with lines of a multiple of 16 bytes."""
    text = WMMA.replace("KIND", "half").replace("SUM", "float")
    text = text.replace("&(copy[0])), 16", f"&(copy[{at}])), {stride}")
    program = """
    p = c.allocate(1024)
    m.launch("product", 1, 32, p, p, p)
    seen = c.synchronize()
    """
    assert seen_by(cuda_stand_in(), text, program) == 716


def test_instructions_in_a_text_multiply_what_they_have_loaded(cuda_stand_in: WhatCuda) -> None:
    sizes = {"a": "(16, 16)", "b": "(16, 8)", "out": "(16, 8)"}
    program = RUN.format(kind="float16", sum="float32", **sizes)
    a, b, out = (np.array(each) for each in seen_by(cuda_stand_in(), MMA, program))
    np.testing.assert_array_equal(out, a @ b + 1)


def test_an_instruction_that_nobody_emulates_stays_for_the_compiler_to_refuse() -> None:
    text = 'asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory");'
    assert without_ptx(text) == text
