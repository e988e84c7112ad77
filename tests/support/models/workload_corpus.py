"""Workloads of many kinds, as a model's kernels are: named, small to read, made by tensor
expressions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import te, topi

_Tensors = list[Any]
Make = Callable[[], _Tensors]


def workloads() -> dict[str, Make]:
    """Name to what makes inputs and output; `primitive` turns it into a function."""
    found: dict[str, Make] = {}
    for dtype in ("float32", "float16"):
        found |= {f"{name}_{dtype}": make for name, make in _floating(dtype).items()}
    return found | _integer()


def primitive(make: Make) -> object:
    """The function, as the compiler would have it."""
    return te.create_prim_func(make())


def _floating(dtype: str) -> dict[str, Make]:
    return _plain_convolutions(dtype) | _convolutions(dtype) | _products(dtype) | _others(dtype)


def _of(dtype: str, build: Callable[..., Any], *shapes: tuple[int, ...]) -> Make:
    def make() -> _Tensors:
        inputs = [te.placeholder(shape, dtype=dtype, name=f"T{len(shape)}") for shape in shapes]
        return [*inputs, build(*inputs)]

    return make


def _conv(
    dtype: str, hw: int, c: int, out: int, k: int, *, stride: int = 1, pad: int = 0, dil: int = 1
) -> Make:
    def build(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        return topi.nn.conv2d_nchw(x, w, stride, pad, dil, out_dtype=dtype)

    return _of(dtype, build, (1, c, hw, hw), (out, c, k, k))


def _bias_relu(dtype: str) -> Make:
    def build(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
        return topi.nn.relu(topi.add(topi.nn.conv2d_nchw(x, w, 1, 1, 1, out_dtype=dtype), b))

    return _of(dtype, build, (1, 32, 28, 28), (64, 32, 3, 3), (1, 64, 1, 1))


def _plain_convolutions(dtype: str) -> dict[str, Make]:
    conv = partial(_conv, dtype)
    return {
        "conv2d_1x1": conv(28, 64, 128, 1),
        "conv2d_3x3": conv(28, 32, 64, 3, pad=1),
        "conv2d_3x3_stride2": conv(56, 32, 64, 3, stride=2, pad=1),
        "conv2d_3x3_dilated": conv(28, 32, 32, 3, pad=2, dil=2),
        "conv2d_5x5": conv(28, 16, 32, 5, pad=2),
        "conv2d_7x7_stride2": conv(112, 3, 64, 7, stride=2, pad=3),
        "conv2d_batch8": _of(
            dtype,
            lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1, out_dtype=dtype),
            (8, 32, 14, 14),
            (32, 32, 3, 3),
        ),
        "conv2d_bias_relu": _bias_relu(dtype),
    }


def _convolutions(dtype: str) -> dict[str, Make]:
    of = partial(_of, dtype)
    return {
        "conv2d_nhwc": of(
            lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, 1, 1, out_dtype=dtype),
            (1, 28, 28, 32),
            (3, 3, 32, 64),
        ),
        "conv2d_grouped": of(
            lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 1, 1, 4, out_dtype=dtype),
            (1, 64, 28, 28),
            (64, 16, 3, 3),
        ),
        "conv2d_grouped_nhwc": of(
            lambda x, w: topi.nn.group_conv2d_nhwc(x, w, 1, 1, 1, 16, out_dtype=dtype),
            (1, 28, 28, 64),
            (3, 3, 4, 64),
        ),
        "conv2d_depthwise": of(
            lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1, out_dtype=dtype),
            (1, 64, 28, 28),
            (64, 1, 3, 3),
        ),
        "conv1d": of(
            lambda x, w: topi.nn.conv1d_ncw(x, w, 1, 1, 1, out_dtype=dtype),
            (1, 64, 128),
            (64, 64, 3),
        ),
        "conv3d": of(
            lambda x, w: topi.nn.conv3d_ncdhw(x, w, 1, 1, 1, 1, out_dtype=dtype),
            (1, 8, 8, 14, 14),
            (16, 8, 3, 3, 3),
        ),
        "conv2d_transposed": of(
            lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), dtype, (0, 0)),
            (1, 32, 14, 14),
            (32, 16, 4, 4),
        ),
    }


def _products(dtype: str) -> dict[str, Make]:
    of = partial(_of, dtype)
    return {
        "matmul": of(topi.nn.matmul, (128, 256), (256, 512)),
        "matmul_square": of(topi.nn.matmul, (512, 512), (512, 512)),
        "dense": of(lambda x, w: topi.nn.dense(x, w, out_dtype=dtype), (16, 768), (3072, 768)),
        "matrix_vector": of(topi.nn.dense, (1, 1024), (1000, 1024)),
        "batch_matmul": of(
            lambda x, y: topi.nn.batch_matmul(x, y, out_dtype=dtype), (12, 128, 64), (12, 128, 64)
        ),
        "attention_scores": of(
            lambda q, k: topi.divide(topi.nn.batch_matmul(q, k, out_dtype=dtype), 8.0),
            (12, 64, 64),
            (12, 64, 64),
        ),
    }


def _others(dtype: str) -> dict[str, Make]:
    of = partial(_of, dtype)
    return {
        "softmax": of(lambda x: topi.nn.softmax(x, axis=-1), (12, 128, 128)),
        "layer_norm": of(
            lambda x, g, b: topi.nn.layer_norm(x, g, b, axis=[1], epsilon=1e-5),
            (128, 768),
            (768,),
            (768,),
        ),
        "rms_norm": of(lambda x, g: topi.nn.rms_norm(x, g, axis=[1]), (128, 768), (768,)),
        "sum_rows": of(lambda x: topi.sum(x, axis=1), (256, 1024)),
        "max_all": of(lambda x: topi.max(x, axis=[0, 1]), (64, 512)),
        "mean_spatial": of(
            lambda x: topi.divide(topi.sum(x, axis=[2, 3]), 169.0), (1, 512, 13, 13)
        ),
        "max_pool": of(
            lambda x: topi.nn.pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max"),
            (1, 64, 56, 56),
        ),
        "average_pool": of(
            lambda x: topi.nn.pool2d(x, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "avg"),
            (1, 64, 28, 28),
        ),
        "residual_relu": of(
            lambda x, y: topi.nn.relu(topi.add(x, y)), (1, 64, 28, 28), (1, 64, 28, 28)
        ),
        "gelu": of(lambda x: topi.multiply(x, topi.sigmoid(topi.multiply(x, 1.702))), (128, 3072)),
        "transpose": of(lambda x: topi.transpose(x, (0, 2, 1)), (12, 128, 64)),
    }


def _integer() -> dict[str, Make]:
    def conv() -> _Tensors:
        x = te.placeholder((1, 32, 28, 28), dtype="int8", name="X")
        w = te.placeholder((64, 32, 3, 3), dtype="int8", name="W")
        return [x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1, out_dtype="int32")]

    def matmul() -> _Tensors:
        x = te.placeholder((128, 256), dtype="int8", name="X")
        w = te.placeholder((512, 256), dtype="int8", name="W")
        return [x, w, topi.nn.dense(x, w, out_dtype="int32")]

    def requantized() -> _Tensors:
        x = te.placeholder((1, 64, 28, 28), dtype="int32", name="X")
        return [x, topi.cast(topi.divide(topi.cast(x, "float32"), 127.0), "int8")]

    return {"conv2d_int8": conv, "matmul_int8": matmul, "requantize_int8": requantized}
