"""Fused kernels of one product, as a model has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm import relax

from tests.compiler.importing.fused_module import one_call
from tunegate.compiler.layouts.packing import mark_constants

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64"})


class Fused(NamedTuple):
    """A module of one kernel; `constants` are those of its call, in its arguments' places."""

    module: Any
    function: Any
    arguments: tuple[Any, ...]

    def with_weights(self, weights: np.ndarray) -> Fused:
        """The kernel called with other weights."""
        place = next(
            n for n, each in enumerate(self.arguments) if isinstance(each, tvm.ir.GenericConst)
        )
        value = relax.const(weights)
        arguments = (*self.arguments[:place], value, *self.arguments[place + 1 :])
        builder = relax.BlockBuilder()
        variable = builder.add_func(self.function, "kernel")
        x = relax.Var("x", self.module["main"].params[0].ty)
        with builder.function("main", [x]):
            with builder.dataflow():
                kinds = self.module["main"].ret_ty
                fields = [x if n != place else value for n in range(len(arguments))]
                made = builder.emit_output(relax.call_tir(variable, fields, kinds))
            builder.emit_func_output(made)
        return Fused(builder.get(), self.function, arguments)

    def computed(self, *given: np.ndarray) -> np.ndarray:
        """Returns the compiler's own result of it, in float32."""
        machine = relax.VirtualMachine(relax.build(self.module, target=TARGET), tvm.cpu())
        found: np.ndarray = machine["main"](*map(tvm.runtime.tensor, given)).numpy()
        return found


def convolution(
    image: tuple[int, ...],
    weights: tuple[int, ...],
    *,
    stages: bool = True,
    activation: Callable[[Any], Any] = relax.op.nn.relu,
    **attributes: Any,
) -> Fused:
    """Channels are last; the stages are a bias and an activation."""

    def value(x: Any) -> Any:
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        made = relax.op.nn.conv2d(x, drawn(weights), **layouts, **attributes)
        return activation(relax.op.add(made, drawn((1, 1, 1, weights[3])))) if stages else made

    return fused_kernel(image, value)


def matrices(rows: tuple[int, ...], depth: int, columns: int) -> Fused:
    """A product and a GELU, which reads it twice."""

    def value(x: Any) -> Any:
        return relax.op.nn.gelu(relax.op.matmul(x, drawn((depth, columns))))

    return fused_kernel((*rows, depth), value)


def activations(images: tuple[int, ...], rows: int, depth: int, columns: int) -> Fused:
    """Products of as many pairs of matrices, and a factor, as the scores of an attention. The call
    has no constants."""
    shapes = (*images, rows, depth), (*images, depth, columns)
    given = [
        relax.Var(name, relax.TensorType(shape, "float32"))
        for name, shape in zip("xy", shapes, strict=True)
    ]
    scores = relax.op.multiply(relax.op.matmul(*given), relax.const(np.float32(0.125)))
    return _fused(scores, given)._replace(arguments=())


def drawn(shape: tuple[int, ...]) -> Any:
    depth = int(np.prod(shape[:-1]))
    values = np.random.default_rng(len(shape)).normal(0, depth**-0.5, shape)
    return relax.const(values.astype("float32"))


def fused_kernel(shape: tuple[int, ...], value: Any) -> Fused:
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    return _fused(value(x), [x])


def _fused(result: Any, inputs: list[Any]) -> Fused:
    with TARGET:
        module = mark_constants(relax.get_pipeline("zero")(one_call(result, inputs)))
    (call,) = (b.value for block in module["main"].body.blocks for b in block.bindings[:1])
    return Fused(module, module[call.args[0]], tuple(call.args[1].fields))
