"""Grouped convolutions with channels last, with a bias and an activation behind them, and what they
compute by numpy."""

from typing import NamedTuple

import numpy as np
from tvm import te, topi

from tunegate.compiler.search.workload import Workload, canonical_workload


class Shape(NamedTuple):
    """`pads` are those above, left, below and right. Channels are those of one group."""

    batch: int = 1
    groups: int = 8
    channels_in: int = 4
    channels_out: int = 4
    height: int = 7
    width: int = 6
    window: tuple[int, int] = (3, 3)
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)

    @property
    def is_possible(self) -> bool:
        """Returns True where the window fits into the padded image."""
        above, left, below, right = self.pads
        reach = [self.dilation * (size - 1) + 1 for size in self.window]
        padded = (self.height + above + below, self.width + left + right)
        return all(size <= most for size, most in zip(reach, padded, strict=True))


def workload(shape: Shape, *, has_constants: bool = True, has_followers: bool = True) -> Workload:
    channels_out = shape.groups * shape.channels_out
    image = te.placeholder(
        (shape.batch, shape.height, shape.width, shape.groups * shape.channels_in), name="image"
    )
    weights = te.placeholder((*shape.window, shape.channels_in, channels_out), name="weights")
    bias = te.placeholder((1, 1, 1, channels_out), name="bias")
    output = topi.nn.group_conv2d_nhwc(
        image, weights, shape.stride, shape.pads, shape.dilation, shape.groups, out_dtype="float32"
    )
    if has_followers:
        output = topi.nn.relu(topi.add(output, bias))
    arguments = [image, weights, *([bias] if has_followers else []), output]
    function = te.create_prim_func(arguments)
    if has_constants:
        function = function.with_attr("layout_free_buffers", list(range(1, len(arguments) - 1)))
    return canonical_workload(function)


def arguments(shape: Shape, *, has_followers: bool = True) -> list[np.ndarray]:
    """Small whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(7)
    image = (shape.batch, shape.height, shape.width, shape.groups * shape.channels_in)
    weights = (*shape.window, shape.channels_in, shape.groups * shape.channels_out)
    shapes = [image, weights, *([(1, 1, 1, weights[-1])] if has_followers else [])]
    return [random.integers(-4, 5, each).astype("float32") for each in shapes]


def convolved(
    shape: Shape, image: np.ndarray, weights: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray:
    """Returns the output of the function, computed by NumPy."""
    above, left, below, right = shape.pads
    padded = np.pad(image, ((0, 0), (above, below), (left, right), (0, 0)))
    height, width = (
        (size - shape.dilation * (window - 1) - 1) // shape.stride + 1
        for size, window in zip(padded.shape[1:3], shape.window, strict=True)
    )
    sums = np.zeros((shape.batch, height, width, shape.groups, shape.channels_out), "float32")
    for y in range(shape.window[0]):
        for x in range(shape.window[1]):
            rows = padded[:, y * shape.dilation :: shape.stride][:, :height]
            pixels = rows[:, :, x * shape.dilation :: shape.stride][:, :, :width]
            grouped = pixels.reshape(*pixels.shape[:3], shape.groups, shape.channels_in)
            its = weights[y, x].reshape(shape.channels_in, shape.groups, shape.channels_out)
            sums += np.einsum("nhwgc,cgk->nhwgk", grouped, its)
    output = sums.reshape(shape.batch, height, width, -1)
    return output if bias is None else np.maximum(output + bias, 0)
