"""Kernels of one product on tensor cores, for tests and benchmarks: without pytest, which a lent
machine may not have."""

from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm import relax

from tests.compiler.low_precision import product_kernels
from tests.support.present import present
from tunegate.compiler.low_precision import tensor_cores
from tunegate.compiler.low_precision.tensor_core_kernel import Plan, tensor_core_kernel
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig


def convolution(
    image: tuple[int, ...], weights: tuple[int, ...], **attributes: Any
) -> product_kernels.Fused:
    def value(x: Any) -> Any:
        made = relax.op.nn.conv2d(x, product_kernels.drawn(weights), **attributes)
        bias = product_kernels.drawn((1, weights[0], 1, 1))
        return relax.op.nn.relu(relax.op.add(made, bias))

    return product_kernels.fused_kernel(image, value)


class Lowered(NamedTuple):
    module: Any
    arguments: list[np.ndarray]
    plan: Plan

    def packed_arguments(self) -> list[np.ndarray]:
        packed, place = self.plan.packing, self.plan.place
        return [
            packed.pack(each) if packed is not None and n == place else each
            for n, each in enumerate(self.arguments)
        ]


def lowered(kernel: product_kernels.Fused, tiles: tensor_cores.Tiles) -> Lowered:
    """The kernel on tensor cores, and its arguments; the weights are packed."""
    product = present(tensor_cores.matrix_product(kernel.function))
    constants = {n: a for n, a in enumerate(kernel.arguments) if isinstance(a, tvm.ir.GenericConst)}
    plan = Plan(product, tiles)
    draw = np.random.default_rng(0)
    arguments = [
        constants[n].value.numpy()
        if n in constants
        else draw.normal(0, 1, [int(extent) for extent in buffer.shape]).astype("float32")
        for n, buffer in enumerate(kernel.function.params[:-1])
    ]
    for operand in (product.rows, product.columns):
        if operand.parameter in constants:
            packed = present(tensor_cores.packed_weights(product, operand, tiles))
            plan = plan._replace(packing=packed, place=operand.parameter)
    function = tensor_core_kernel(kernel.function, plan)
    return Lowered(
        tvm.IRModule({"main": function.with_attr("global_symbol", "main")}), arguments, plan
    )


def compiled(kernel: Lowered, arch: str) -> Any:
    target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch=arch)).target
    with target:
        return tvm.tirx.build(kernel.module, target=target, pipeline="default")
