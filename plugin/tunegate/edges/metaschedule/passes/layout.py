"""The layout of images inside a model. Its inputs and outputs keep theirs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

from tvm import relax

from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.passes.clips import with_plain_clips
from tunegate.edges.metaschedule.passes.transposes import without_inverse_transposes
from tunegate.edges.metaschedule.passes.turned_convolutions import with_turned_convolutions

_logger = logging.getLogger(__name__)

Layout = Literal["nhwc", "nchw"]
"""The place of an image's channels: last or first."""
_CONVOLUTION, _TRANSPOSED = "relax.nn.conv2d", "relax.nn.conv2d_transpose"
_CHANNELS_LAST = ["NHWC", "HWIO", "NHWC"]
_TRANSPOSED_AS_IMPORTED = ["NCHW", "IOHW", "NCHW"]


def layouts(target: TargetConfig) -> tuple[Layout, ...]:
    """The layouts to try for this target, the preferred one first. On a CPU the innermost loop is
    vectorized: over channels it is long, aligned and unit-stride for the weights too."""
    if target.layout != "auto":
        return (target.layout,)
    return ("nhwc", "nchw") if target.kind == "llvm" else ("nchw",)


def channels_last(module: Any) -> Any:
    """A Relax module before legalization, with the layout of its convolutions changed and that of
    what is between them. Transposed convolutions stay as they are: the compiler has no other code
    for them. Where there is an operator that the compiler cannot turn (a stack of tensors is one),
    each convolution is turned by itself. A module without convolutions is not turned: the compiler
    divides by zero where it turns scalars."""
    if not _has_convolution(module):
        return _tried(module, lambda plain: plain) or module
    together = _tried(module, _turned_together)
    return together or _tried(module, with_turned_convolutions) or module


def _turned_together(module: Any) -> Any:
    return relax.transform.ConvertLayout({}, _wanted)(module)


def _tried(module: Any, turn: Callable[[Any], Any]) -> Any | None:
    """Returns the turned module, or None where the compiler cannot turn it."""
    try:
        return without_inverse_transposes(turn(with_plain_clips(module)))
    except Exception:
        _logger.info("the layout of convolutions stays as it is", exc_info=True)
        return None


def _has_convolution(module: Any) -> bool:
    values = (binding.value for block in module["main"].body.blocks for binding in block.bindings)
    names = {getattr(getattr(value, "op", None), "name", "") for value in values}
    return _CONVOLUTION in names


def _wanted(call: Any) -> dict[str, list[str]]:
    if call.op.name == _TRANSPOSED:
        return {_TRANSPOSED: _TRANSPOSED_AS_IMPORTED}
    if call.op.name != _CONVOLUTION:
        return {}
    return {_CONVOLUTION: _CHANNELS_LAST}
