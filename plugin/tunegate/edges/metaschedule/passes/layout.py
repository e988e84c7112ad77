"""The layout of images inside a model. Its inputs and outputs keep theirs."""

from __future__ import annotations

import logging
from typing import Any

from tvm import relax

from tunegate.config import TargetConfig

_logger = logging.getLogger(__name__)

_CONVOLUTION = "relax.nn.conv2d"
_CHANNELS_LAST = ["NHWC", "HWIO", "NHWC"]
_AS_IMPORTED = ["NCHW", "OIHW", "NCHW"]


def is_channels_last(target: TargetConfig) -> bool:
    """Whether channels come last for this target. On a CPU the innermost loop is vectorized: over
    channels it is long, aligned and unit-stride for the weights too."""
    return target.layout == "nhwc" or (target.layout == "auto" and target.kind == "llvm")


def channels_last(module: Any) -> Any:
    """A Relax module before legalization, with the layout of its plain convolutions changed and
    that of what is between them. Grouped convolutions stay as they are, and so does a module with
    an operator that the compiler cannot turn (a maximum over a fifth dimension is one)."""
    try:
        return relax.transform.ConvertLayout({}, _wanted)(module)
    except Exception:
        _logger.info("the layout of convolutions stays as it is", exc_info=True)
        return module


def _wanted(call: Any) -> dict[str, list[str]]:
    if call.op.name != _CONVOLUTION:
        return {}
    return {_CONVOLUTION: _CHANNELS_LAST if int(call.attrs.groups) == 1 else _AS_IMPORTED}
