"""Convolutions with channels last, each between two transposes of its own.

TVM's change of layouts carries a layout from operator to operator, and gives up on a whole model
for one operator that it cannot follow. These transposes meet their inverses afterwards, or become
part of the kernel before or behind.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

_CONVOLUTION = "relax.nn.conv2d"
_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_TO_HWIO = (2, 3, 1, 0)


def with_turned_convolutions(module: Any) -> Any:
    """The Relax module, its inputs and outputs as they are."""
    turned = module.clone()
    main = _Turned(module).visit_expr(module["main"])
    turned.update_func(turned.get_global_var("main"), main)
    return turned


@relax.expr_functor.mutator
class _Turned(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != _CONVOLUTION or not _is_turnable(call.attrs):
            return call
        image, weights = call.args
        attributes = call.attrs
        convolution = relax.op.nn.conv2d(
            self.builder_.emit(relax.op.permute_dims(image, _TO_LAST)),
            self.builder_.emit(relax.op.permute_dims(weights, _TO_HWIO)),
            strides=list(attributes.strides),
            padding=list(attributes.padding),
            dilation=list(attributes.dilation),
            groups=int(attributes.groups),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_layout="NHWC",
            out_dtype=attributes.out_dtype,
        )
        return relax.op.permute_dims(self.builder_.emit(convolution), _TO_FIRST)


def _is_turnable(attributes: Any) -> bool:
    layouts = (attributes.data_layout, attributes.kernel_layout, attributes.out_layout)
    return tuple(map(str, layouts)) == ("NCHW", "OIHW", "NCHW")
