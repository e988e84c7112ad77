"""The forms of a function: the same computation by another algorithm, each with a search space.

Which of them is the fastest depends on the extents, so the search measures them all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tunegate.compiler.schedules.grouped_convolutions import group_vectors
from tunegate.compiler.schedules.unfolded_image import unfolded_image

_logger = logging.getLogger(__name__)

_MAIN = "main"
_Form = TypeVar("_Form")
DIRECT, IM2COL, GROUP_VECTORS = "direct", "im2col", "group-vectors"
ASKED_FOR = "tunegate.algorithm"
"""The attribute of a function that may have no other form than the one that it names."""


class AlgorithmVariant(NamedTuple):
    """`module` has one function, `main`, of the same arguments as the function it is a form of. One
    that `is_seldom_best` gets fewer random samples. `lanes` are the numbers that one step of its
    innermost loop computes."""

    name: str
    module: Any
    is_seldom_best: bool = False
    lanes: int = 1


def variants_of(module: Any, kind: str) -> tuple[AlgorithmVariant, ...]:
    """The direct form first, or the only one that is asked for. `kind` is that of the target: on a
    GPU the tensor cores' own space has products already."""
    every = _every_variant(module, kind)
    asked = asked_algorithm(module[_MAIN])
    alone = [each._replace(is_seldom_best=False) for each in every if each.name == asked]
    return tuple(alone) or every


def asked_algorithm(function: Any) -> str:
    """The only form that the function may have; '' where the search chooses."""
    return str((function.attrs or {}).get(ASKED_FOR, ""))


def _every_variant(module: Any, kind: str) -> tuple[AlgorithmVariant, ...]:
    direct = AlgorithmVariant(DIRECT, module)
    if kind != "llvm":
        return (direct,)
    vectors = _made(group_vectors, module[_MAIN])
    if vectors is not None:
        return (
            direct._replace(is_seldom_best=vectors.is_shuffled),
            AlgorithmVariant(GROUP_VECTORS, vectors.module, lanes=vectors.lanes),
        )
    product = _made(unfolded_image, module)
    if product is None:
        return (direct,)
    # With channels last the direct form is the best of nine in ten convolutions.
    return (direct, AlgorithmVariant(IM2COL, product, is_seldom_best=True))


def _made(form: Callable[[Any], _Form | None], of: Any) -> _Form | None:
    try:
        return form(of)
    except Exception:
        _logger.info("a function has no other form", exc_info=True)
        return None
