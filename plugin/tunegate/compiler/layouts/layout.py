"""The layout of images inside a model. Inputs and outputs keep theirs."""

import logging
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import tvm
from tvm import relax

from tunegate.config import TargetConfig

_logger = logging.getLogger(__name__)

Layout = Literal["nhwc", "nchw"]
"""The position of an image's channels: last or first."""
_TRANSPOSED = "relax.nn.conv2d_transpose"
CHANNELS_LAST = {
    "relax.nn.conv1d": ["NWC", "WIO", "NWC"],
    "relax.nn.conv2d": ["NHWC", "HWIO", "NHWC"],
}
_AS_IMPORTED = {
    "relax.nn.conv1d_transpose": ["NCW", "IOW", "NCW"],
    _TRANSPOSED: ["NCHW", "IOHW", "NCHW"],
}


def layouts(target: TargetConfig) -> tuple[Layout, ...]:
    """Returns the layouts to try for this target, the preferred one first. On a CPU the innermost
    loop is vectorized: over channels it is long, aligned and unit-stride for the weights too."""
    if target.layout != "auto":
        return (target.layout,)
    return ("nhwc", "nchw") if target.kind == "llvm" else ("nchw",)


def channels_last(module: Any) -> Any:
    """Returns a Relax module, not yet legalized, with channels last in its convolutions and between
    them. Transposed convolutions whose windows overlap stay as they are: the compiler has no other
    code for them. If the module has an operator that the compiler cannot convert (as a stack of
    tensors), each convolution is converted alone. A module without convolutions stays as it is: the
    compiler divides by zero on scalars."""
    if not _has_convolution(module):
        return _try_converting(module, lambda plain: plain) or module
    together = _try_converting(module, relax.transform.ConvertLayout({}, _wanted_layouts))
    return together or _try_converting(module, with_turned_convolutions) or module


def _try_converting(module: Any, turn: Callable[[Any], Any]) -> Any | None:
    """Returns the converted module, or None if the compiler cannot convert it."""
    try:
        return without_inverse_transposes(turn(with_products_for_transposed(module)))
    except Exception:
        _logger.info("the layout of convolutions stays as it is", exc_info=True)
        return None


def _has_convolution(module: Any) -> bool:
    values = (binding.value for block in module["main"].body.blocks for binding in block.bindings)
    names = {getattr(getattr(value, "op", None), "name", "") for value in values}
    return not names.isdisjoint(CHANNELS_LAST)


def _wanted_layouts(call: Any) -> dict[str, list[str]]:
    of_operator = (CHANNELS_LAST | _AS_IMPORTED).get(call.op.name)
    return {call.op.name: of_operator} if of_operator else {}


# Transposed convolutions whose windows do not overlap, as decoders use them to double an image.
# Each pixel becomes a patch, by a product with the weights. TVM's code for them inserts zeros
# between the pixels and multiplies those, too.


def with_products_for_transposed(module: Any) -> Any:
    """Returns the Relax module with a 1x1 convolution for each such transposed one."""
    return _replace_main(module, _Patches(module).visit_expr(module["main"]))


@relax.expr_functor.mutator
class _Patches(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != _TRANSPOSED or not _makes_patches(call):
            return call
        image, weights = call.args
        batch, _, height, width = image.ty.shape
        inside, outside, rows, columns = (int(each) for each in weights.ty.shape)
        kernel = relax.op.permute_dims(weights, [0, 2, 3, 1])
        products = relax.op.nn.conv2d(
            self.builder_.emit(relax.op.permute_dims(image, [0, 2, 3, 1])),
            self.builder_.emit(relax.op.reshape(kernel, [1, 1, inside, rows * columns * outside])),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_dtype=call.attrs.out_dtype,
        )
        patches = relax.op.reshape(products, [batch, height, width, rows, columns, outside])
        together = relax.op.permute_dims(patches, [0, 1, 3, 2, 4, 5])
        whole = relax.op.reshape(together, [batch, height * rows, width * columns, outside])
        return relax.op.permute_dims(self.builder_.emit(whole), [0, 3, 1, 2])


def _makes_patches(call: Any) -> bool:
    attributes, kernel = call.attrs, [int(each) for each in call.args[1].ty.shape][2:]
    return (
        [int(stride) for stride in attributes.strides] == kernel
        and not any(int(each) for each in (*attributes.padding, *attributes.output_padding))
        and all(int(each) == 1 for each in (*attributes.dilation, attributes.groups))
        and (attributes.data_layout, attributes.kernel_layout) == ("NCHW", "IOHW")
    )


# Removes transposes that undo each other, with element-wise operators between them. TVM's layout
# pass cannot convert `clip`, nor a product with a one-element constant: it turns the image back for
# them, so that a convolution cannot fuse with what follows. Convolutions that are converted one by
# one have such transposes everywhere.

_TRANSPOSE = "relax.permute_dims"
ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "clip"),
        *("nn.relu", "nn.leakyrelu", "nn.silu", "nn.gelu", "nn.gelu_tanh", "nn.softplus"),
        *("sigmoid", "tanh", "exp", "log", "erf", "sqrt", "rsqrt", "abs", "negative", "square"),
    )
)
_QUANTIZING = {
    "relax.quantize": relax.op.quantize,
    "relax.dequantize": relax.op.dequantize,
}
"""Element-wise too, but for scales along an axis."""


def without_inverse_transposes(module: Any) -> Any:
    """Returns the module with transposes moved behind such operators and without pairs that cancel;
    the module unchanged if that leaves no fewer transposes."""
    main = _TransposeSinker(module).visit_expr(module["main"])
    candidate = relax.transform.DeadCodeElimination()(_replace_main(module, main))
    return candidate if _transposes(candidate) < _transposes(module) else module


def _replace_main(module: Any, main: Any) -> Any:
    copy = module.clone()
    copy.update_func(copy.get_global_var("main"), main)
    return relax.transform.CanonicalizeBindings()(copy)


def _transposes(module: Any) -> int:
    transposes: list[Any] = []
    relax.analysis.post_order_visit(
        module["main"], lambda node: transposes.append(node) if _is_transpose(node) else None
    )
    return len(transposes)


def _is_transpose(node: Any) -> bool:
    return isinstance(node, relax.Call) and getattr(node.op, "name", "") == _TRANSPOSE


@relax.expr_functor.mutator
class _TransposeSinker(relax.PyExprMutator):  # type: ignore[misc]
    """Turns each operator on transposed values into a transpose of the operator."""

    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if name == _TRANSPOSE:
            before = self._producing_transpose(call.args[0])
            if before is not None and _axes(call) == _inverse(_axes(before)):
                return before.args[0]
            return call
        if name in _QUANTIZING:
            return self._move_transpose_behind(call, _QUANTIZING[name])
        return self._behind(call) if name in ELEMENTWISE else call

    def _move_transpose_behind(self, call: Any, operator: Callable[..., Any]) -> Any:
        """Returns `call` with the transpose of its numbers behind it."""
        numbers, scale, zero = call.args
        before = self._producing_transpose(numbers)
        if before is None:
            return call
        order, attributes = _axes(before), call.attrs
        result = operator(
            before.args[0], scale, zero, order[int(attributes.axis)], str(attributes.out_dtype)
        )
        return relax.op.permute_dims(self.builder_.emit(result), list(order))

    def _behind(self, call: Any) -> Any:
        """Returns `call` with its transposes behind it, if all operands are transposed alike."""
        transposes = [self._producing_transpose(argument) for argument in call.args]
        axes = {_axes(transpose) for transpose in transposes if transpose is not None}
        if len(axes) != 1:
            return call
        order = axes.pop()
        plain = [
            _turned_back(argument, order) if transpose is None else transpose.args[0]
            for transpose, argument in zip(transposes, call.args, strict=True)
        ]
        if any(argument is None for argument in plain):
            return call
        result = self.builder_.emit(relax.Call(call.op, plain, call.attrs))
        return relax.op.permute_dims(result, list(order))

    def _producing_transpose(self, value: Any) -> Any | None:
        """Returns the transpose that made the value."""
        producing = self.lookup_binding(value) if isinstance(value, relax.Var) else None
        return producing if _is_transpose(producing) else None


def _turned_back(value: Any, axes: tuple[int, ...]) -> Any | None:
    """Returns a number or a constant as before such a transpose, None for a computed value."""
    if isinstance(value, tvm.tirx.IntImm | tvm.tirx.FloatImm):
        return value
    if not isinstance(value, tvm.ir.GenericConst):
        return None
    numbers = value.value.numpy()
    if numbers.ndim > len(axes):
        return None
    if numbers.size == 1:
        return value
    whole = numbers.reshape((1,) * (len(axes) - numbers.ndim) + numbers.shape)
    original = np.ascontiguousarray(whole.transpose(_inverse(axes)))
    return relax.const(original, str(original.dtype))


def _axes(transpose: Any) -> tuple[int, ...]:
    axes = transpose.attrs.axes
    if axes is None:
        return tuple(reversed(range(len(transpose.args[0].ty.shape))))
    return tuple(int(axis) for axis in axes)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(place) for place in range(len(axes)))


# Convolutions with channels last, each between two transposes of its own. TVM's layout pass carries
# a layout from operator to operator, and gives up on a whole model for one operator that it cannot
# follow. These transposes meet their inverses afterwards, or become part of the kernel before or
# behind.

_OPERATORS_TO_TURN = {"relax.nn.conv1d": relax.op.nn.conv1d, "relax.nn.conv2d": relax.op.nn.conv2d}


def with_turned_convolutions(module: Any) -> Any:
    """Returns the module with converted convolutions, its inputs and outputs unchanged."""
    return _replace_main(module, _Turned(module).visit_expr(module["main"]))


@relax.expr_functor.mutator
class _Turned(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        name, attributes = getattr(call.op, "name", ""), call.attrs
        if name not in _OPERATORS_TO_TURN or not _is_turnable(attributes):
            return call
        image, weights = call.args
        of_image, of_weights, of_output = CHANNELS_LAST[name]
        pixels = range(2, len(of_image))
        convolution = _OPERATORS_TO_TURN[name](
            self.builder_.emit(relax.op.permute_dims(image, [0, *pixels, 1])),
            self.builder_.emit(relax.op.permute_dims(weights, [*pixels, 1, 0])),
            strides=list(attributes.strides),
            padding=list(attributes.padding),
            dilation=list(attributes.dilation),
            groups=int(attributes.groups),
            data_layout=of_image,
            kernel_layout=of_weights,
            out_layout=of_output,
            out_dtype=attributes.out_dtype,
        )
        to_first = [0, len(pixels) + 1, *range(1, len(pixels) + 1)]
        return relax.op.permute_dims(self.builder_.emit(convolution), to_first)


def _is_turnable(attributes: Any) -> bool:
    layouts = (attributes.data_layout, attributes.kernel_layout, attributes.out_layout)
    return tuple(map(str, layouts)) in {("NCW", "OIW", "NCW"), ("NCHW", "OIHW", "NCHW")}
