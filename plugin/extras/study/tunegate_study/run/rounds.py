"""The launches of a study: in each round every cell once, in a new order, each beside the reference
of its model."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tunegate.errors import MeasurementError
from tunegate.ports import Bench, Benchmarker, Progress
from tunegate_study.studies import StudyCell, StudyLaunch

_PAIRS = 6
_TRIES = 2


class Rounds:
    """Measures built cells. `builds` holds them by key, `references` what each is compared with;
    `keep` gets a cell after each of its launches, `is_over` says that time is up."""

    def __init__(
        self,
        benchmarker: Benchmarker,
        builds: Path,
        references: Mapping[str, Path],
        keep: Callable[[StudyCell], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._benchmarker, self._builds, self._references = benchmarker, builds, references
        self._keep, self._is_over = keep, is_over
        self._benches: dict[str, Bench] = {}

    def measure(
        self, cells: Mapping[str, StudyCell], rounds: int, seed: int, progress: Progress
    ) -> dict[str, StudyCell]:
        """Returns the cells with a launch of each round, as far as time allows. One that cannot be
        measured has the reason."""
        found = dict(cells)
        for number in range(1, rounds + 1):
            order = [key for key, cell in found.items() if _is_due(cell, number)]
            random.Random(f"{seed}/{number}").shuffle(order)  # noqa: S311 -- an order, no secret
            for done, key in enumerate(order):
                if self._is_over():
                    return found
                progress.update(f"round {number} of {rounds}: {done + 1} of {len(order)} cells")
                found[key] = self._launch(found[key], number)
                self._keep(found[key])
        return found

    def _launch(self, cell: StudyCell, number: int) -> StudyCell:
        for attempt in range(_TRIES):
            try:
                launch = self._bench(cell.key).launch(_PAIRS)
            except MeasurementError as error:
                if attempt == _TRIES - 1:
                    return msgspec.structs.replace(
                        cell, reason=f"not measured: {error}", may_pass=True
                    )
                continue
            made = StudyLaunch(
                round=number,
                effect=launch.effect,
                ms=launch.head_ms,
                reference_ms=launch.base_ms,
                peak_bytes=launch.head_peak_bytes,
                workspace_bytes=launch.head_workspace_bytes,
                joules=launch.head_joules,
                energy_source=launch.energy_source,
            )
            return msgspec.structs.replace(cell, launches=(*cell.launches, made))
        raise AssertionError

    def _bench(self, key: str) -> Bench:
        if key not in self._benches:
            reference, build = self._references[key], self._builds / key
            self._benches[key] = self._benchmarker.pair(reference, build)
        return self._benches[key]


def _is_due(cell: StudyCell, number: int) -> bool:
    return not cell.reason and len(cell.launches) < number
