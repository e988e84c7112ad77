from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.edges.metaschedule.parts.decision import PartsDecision
from tunegate.engine.protocol import BuiltFunction
from tunegate_cache.format.records import WorkloadKey

FUNCTION = BuiltFunction(
    key=WorkloadKey("w", "t"), name="n", function="f", weight=1, source="exact", rid="r", ms=None
)


def test_what_was_decided_holds_for_the_same_kernels_schedules_and_threads(tmp_path: Path) -> None:
    first = PartsDecision.of(tmp_path / "decided", [[FUNCTION], [FUNCTION]], 1)
    assert first.read() is None
    first.write((1,))
    renamed = msgspec.structs.replace(FUNCTION, name="another", ms=2.0)
    assert PartsDecision.of(tmp_path / "decided", [[renamed], [FUNCTION]], 1).read() == (1,)
    tuned = msgspec.structs.replace(FUNCTION, rid="better")
    assert PartsDecision.of(tmp_path / "decided", [[tuned], [FUNCTION]], 1).read() is None
    assert PartsDecision.of(tmp_path / "decided", [[FUNCTION], [FUNCTION]], 2).read() is None
