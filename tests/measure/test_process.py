"""A process that measures: nothing around it tells the sides apart."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tunegate.measure.bench_messages import Sides, Start
from tunegate.measure.bench_process import Devices
from tunegate.measure.pair_bench import PairBench
from tunegate.system.processes import memory_limit


def test_nothing_around_a_process_tells_the_head_from_the_base(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that is free at its start does not tell them apart either."""
    free = iter(range(64 << 30, 0, -(1 << 30)))
    monkeypatch.setattr(memory_limit, "available_bytes", lambda: next(free))
    bench = PairBench(Sides(small, small), tmp_path, 1, Devices(None))
    with ExitStack() as stack:
        sides = [bench._process(stack, start, {}) for start in bench._starts(7, 0.1)]
        assert all(side.start() > 0 for side in sides)
        around = [Path(f"/proc/{side.pid}") for side in sides]
        for name in ("environ", "cmdline"):
            base, head = ((place / name).read_bytes() for place in around)
            assert base == head, name
        assert len({(place / "cwd").resolve() for place in around}) == 1


def both(artifact: Path) -> tuple[Start, Start]:
    return PairBench(Sides(artifact, artifact), Path(), 1, Devices(None))._starts(7, 0.1)


def test_both_sides_of_a_launch_are_asked_the_same(small: Path) -> None:
    base, head = both(small)
    assert base == head
    assert base.seed == 7
