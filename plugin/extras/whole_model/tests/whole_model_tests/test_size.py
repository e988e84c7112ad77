"""One launch is offered where launches matter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.targets import ResolvedTarget
from tunegate.errors import NotOfferedError
from tunegate_whole_model.nests.size import require_small


def _functions(flops: float) -> list[ModelFunction]:
    return [cast("ModelFunction", SimpleNamespace(flops=flops, weight=2))]


def _target(threads: int) -> ResolvedTarget:
    attributes: dict[str, Any] = {"num-cores": threads}
    return ResolvedTarget(target=None, attributes=attributes, key="")


def test_a_small_model_on_two_threads_is_taken() -> None:
    require_small(_functions(2e7), _target(2))


@pytest.mark.parametrize(
    ("flops", "threads", "said"),
    [(1.0, 1, "one thread"), (3e7, 2, "it has 60 million operations, .* beyond 40")],
)
def test_others_are_not(flops: float, threads: int, said: str) -> None:
    with pytest.raises(NotOfferedError, match=said):
        require_small(_functions(flops), _target(threads))
