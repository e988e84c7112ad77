"""The work of a study on this machine: kept, unchanged cells are done; the rest is built and
measured until it is complete, or the minutes are up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from tunegate.artifacts.artifact_io import digest_of
from tunegate.errors import ArtifactError, ModelError
from tunegate.ports import Benchmarker
from tunegate.system.clock import SystemClock, new_seed
from tunegate.system.machine.device import ThisMachine
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.system.progress.shown_progress import progress
from tunegate.wording import plural
from tunegate_study.design.measured import RUNTIME
from tunegate_study.design.study_config import StudyConfig
from tunegate_study.run.groups import CellGroup, groups_of, versions_of
from tunegate_study.run.kept_cells import KeptCells
from tunegate_study.run.rounds import Rounds
from tunegate_study.run.subject import Chosen
from tunegate_study.studies import CellSetting, StudyCell


class CellBuilder(Protocol):
    """Builds cells, and what they are compared with, into directories."""

    @property
    def directory(self) -> Path: ...
    def build(self, group: CellGroup, minutes: float) -> Sequence[StudyCell]: ...
    def reference(self, group: CellGroup) -> Path: ...


class StudyWork:
    """`kept` has the cells of earlier runs, and gets those of this one as they are finished."""

    def __init__(
        self,
        config: StudyConfig,
        subject: Chosen,
        kept_cells: KeptCells,
        builder: CellBuilder,
        benchmarker: Benchmarker,
    ) -> None:
        self._config, self._chosen, self._kept = config, subject, kept_cells
        self._builder, self._benchmarker = builder, benchmarker
        self._seed = new_seed()
        self._clock, self._progress = SystemClock(), progress()
        self._ends = self._clock.monotonic() + 60 * config.budget.minutes
        self._device = ThisMachine(config.targets[0].kind).fingerprint()

    def finish(self, keys: Mapping[str, CellSetting]) -> dict[str, StudyCell]:
        """Returns the cell of each key. Cells that time did not allow have only their setting.
        Raises CancelledError: what was finished is kept."""
        try:
            return self._measure(keys, self._build(keys))
        finally:
            self._progress.close()

    def _build(self, keys: Mapping[str, CellSetting]) -> dict[str, StudyCell]:
        cells = {key: StudyCell(key=key, setting=setting) for key, setting in keys.items()}
        for key, setting in keys.items():
            known = self._kept.of(key)
            if known is not None and self._counts(known, setting):
                cells[key] = msgspec.structs.replace(known, setting=setting)
        groups = groups_of(
            self._chosen, {key: keys[key] for key, cell in cells.items() if not cell.versions}
        )
        for done, group in enumerate(groups, start=1):
            if self._is_over():
                break
            self._progress.step(f"build {done} of {len(groups)}: {_group_title(group)}")
            for cell in self._builder.build(group, max(0.0, self._seconds_left() / 60)):
                self._kept.keep(cell)
                cells[cell.key] = cell
        return cells

    def _measure(
        self, keys: Mapping[str, CellSetting], cells: dict[str, StudyCell]
    ) -> dict[str, StudyCell]:
        rounds = self._config.rounds
        waiting = {k: c for k, c in cells.items() if c.digest and len(c.launches) < rounds}
        if not waiting or self._is_over():
            return cells
        references, refused = self._references({key: keys[key] for key in waiting})
        cells |= {key: _without(cells[key], reason) for key, reason in refused.items()}
        waiting = {key: cell for key, cell in waiting.items() if key not in refused}
        self._progress.step(f"measure: {len(waiting)} cells in {rounds} rounds")
        measuring = Rounds(
            self._benchmarker, self._builder.directory, references, self._kept.keep, self._is_over
        )
        return cells | measuring.measure(waiting, rounds, self._seed, self._progress)

    def _references(
        self, waiting: Mapping[str, CellSetting]
    ) -> tuple[dict[str, Path], dict[str, str]]:
        """Returns what each of these cells is compared with, and why there is nothing for
        others."""
        found: dict[str, Path] = {}
        refused: dict[str, str] = {}
        for group in groups_of(self._chosen, waiting):
            try:
                found |= dict.fromkeys(group.cells, self._builder.reference(group))
            except ModelError as error:
                refused |= dict.fromkeys(group.cells, str(error))
        return found, refused

    def _counts(self, cell: StudyCell, setting: CellSetting) -> bool:
        """Returns whether a kept cell is what would be built here now."""
        if cell.is_cut or cell.device != self._device or cell.may_pass:
            return False
        if cell.versions != versions_of(setting[RUNTIME]):
            return False
        return bool(cell.reason) or len(cell.launches) >= self._config.rounds or self._is_here(cell)

    def _is_here(self, cell: StudyCell) -> bool:
        try:
            return digest_of(ArtifactFile.read(self._builder.directory / cell.key)) == cell.digest
        except ArtifactError:
            return False

    def _seconds_left(self) -> float:
        return self._ends - self._clock.monotonic()

    def _is_over(self) -> bool:
        return self._seconds_left() <= 0


def _group_title(group: CellGroup) -> str:
    runtimes = sorted({candidate.title for candidate in group.candidates.values()})
    return f"{group.model.name}: {', '.join(runtimes)}, {plural(group.target.threads, 'thread')}"


def _without(cell: StudyCell, reason: str) -> StudyCell:
    return msgspec.structs.replace(cell, reason=f"not measured: {reason}", may_pass=True)
