"""Convolutions in the one form that a target asks for: those that have it are marked, and search,
records and default schedules know no other one of them."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from tunegate.compiler.schedules.algorithm_variants import (
    ASKED_FOR,
    IM2COL,
    asked_algorithm,
    variants_of,
)
from tunegate.compiler.schedules.unfolded_image import unfolded_image
from tunegate.compiler.schedules.unscheduled import with_unscheduled
from tunegate.compiler.search.workload import canonical_workload
from tunegate.config import AUTO

_logger = logging.getLogger(__name__)

_ENTRY, _SYMBOL = "main", "global_symbol"


def with_algorithm(module: Any, algorithm: str) -> Any:
    """The module with a mark on each function that has this form beside another one. What has one
    form alone stays as it is."""
    if algorithm == AUTO:
        return module
    return with_unscheduled(module, partial(_marked, algorithm=algorithm))


def with_asked_forms(module: Any) -> Any:
    """The module with the marked functions in their form, where loops stay as they are written.
    Those in vectors of groups have a schedule of their own."""
    return with_unscheduled(module, _in_its_form)


def _marked(function: Any, algorithm: str) -> Any | None:
    try:
        names = [each.name for each in variants_of(canonical_workload(function).module, "llvm")]
    except Exception:
        _logger.info("a function has no other form", exc_info=True)
        return None
    is_choice = len(names) > 1 and algorithm in names
    return function.with_attr(ASKED_FOR, algorithm) if is_choice else None


def _in_its_form(function: Any) -> Any | None:
    if asked_algorithm(function) != IM2COL:
        return None
    product = unfolded_image(canonical_workload(function).module)
    if product is None:
        return None
    symbol = (function.attrs or {}).get(_SYMBOL)
    main = product[_ENTRY]
    return main.with_attr(_SYMBOL, symbol) if symbol else main.without_attr(_SYMBOL)
