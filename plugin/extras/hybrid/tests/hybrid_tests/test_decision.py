from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec
from tests.support.tuning_records import make_record

from tunegate.compiler.build.functions import ModelFunction
from tunegate_hybrid.decision import PartsDecision


class Kernel(msgspec.Struct):
    digest: str


def function(digest: str, label: str = "") -> ModelFunction:
    """A function of which only the kernel matters."""
    return ModelFunction(
        name="f",
        workload=cast("ModelFunction", Kernel(digest)),  # type: ignore[arg-type]
        weight=1,
        label=label,
        operator="o",
        dtype="float32",
        flops=1.0,
        bytes_moved=1.0,
    )


def test_what_was_decided_holds_for_the_same_kernels_schedules_and_threads(tmp_path: Path) -> None:
    at, kernels = tmp_path / "decided", [function("a"), function("b")]
    first = PartsDecision.of_parts(at, kernels, {}, 1)
    assert first.read(set[int]) is None
    first.write({3, 1})
    renamed = [function("a", "another"), function("b")]
    assert PartsDecision.of_parts(at, renamed, {}, 1).read(set[int]) == {1, 3}
    assert PartsDecision.of_parts(at, kernels, {"a": (make_record(),)}, 1).read(set[int]) is None
    assert PartsDecision.of_parts(at, kernels, {}, 2).read(set[int]) is None
    assert PartsDecision.of_parts(at, kernels[:1], {}, 1).read(set[int]) is None
