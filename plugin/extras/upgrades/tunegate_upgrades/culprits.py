"""Finds the package that makes an upgraded model slower, by measuring in environments with some of
the head's packages and otherwise the base's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.measurements import CellMeasurement, MeasurementRun
from tunegate.decide.compare import compare
from tunegate.errors import MeasurementError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.bench_process import Limits
from tunegate.measure.measure_cells import measure
from tunegate.models.operator_libraries import Libraries
from tunegate.plan.run_forecast import answer_seconds
from tunegate.review.gate_rules import GateRules
from tunegate.tools import GateTools
from tunegate_upgrades.environments.uv import UvError
from tunegate_upgrades.lock_files.lock import PinnedPackage
from tunegate_upgrades.locked_sides import LockedSides, MakeEnvironment
from tunegate_upgrades.package_search import FoundPackages, search

MAX_SECONDS_OF_ONE = 60.0
"""The seconds of one measurement of the search, for an already known slowdown."""


class Culprits:
    """Finds packages; all searches of a run together take at most `gate.seconds`, plus one
    measurement that has begun."""

    def __init__(
        self,
        locked: Mapping[str, LockedSides],
        make_environment: MakeEnvironment,
        scratch: Path,
        libraries: Libraries = (),
    ) -> None:
        """`locked` is keyed by the models that run the packages; `libraries` may be loaded for
        custom operators."""
        self._locked, self._made, self._scratch = locked, make_environment, scratch
        self._libraries = libraries

    def with_culprits(self, run: MeasurementRun, tools: GateTools) -> MeasurementRun:
        """Returns the measurements, with a line on the guilty package of each slower upgraded
        model."""
        slower = {each.cell for each in compare(run, tools.rules.gate) if each.decision == "fail"}
        builds = {built.cell: built for built in run.builds}
        until = tools.context.clock.monotonic() + tools.rules.gate.seconds
        cells = [
            self._find_culprit(cell, builds[cell.cell], tools, until)
            if cell.cell in slower and cell.cell.model in self._locked
            else cell
            for cell in run.cells
        ]
        return msgspec.structs.replace(run, cells=tuple(cells))

    def _find_culprit(
        self, cell: CellMeasurement, built: CellBuilds, tools: GateTools, until: float
    ) -> CellMeasurement:
        locked = self._locked[cell.cell.model]

        def is_slower(names: frozenset[str]) -> bool | None:
            if tools.context.clock.monotonic() >= until:
                return None
            shown = ", ".join(sorted(names))
            tools.context.progress.step(f"which package: {shown} of the head alone")
            return self._is_slower(built, locked.mixture(names), tools)

        found = search(locked.changed_names(), is_slower)
        return msgspec.structs.replace(cell, packages=sentence(locked, found))

    def _is_slower(
        self, built: CellBuilds, pins: Sequence[PinnedPackage], tools: GateTools
    ) -> bool | None:
        """Measures the base against an environment with these packages. Returns None if it cannot
        be made, the model does not run in it, or the gate decides nothing."""
        if built.base is None:
            return None
        try:
            python = self._made(pins) / "bin" / "python"
            mixed, places = self._copy_base(built, built.base, python, tools.context.out)
            return self._gate_mixture(mixed, places, tools)
        except (UvError, OSError, MeasurementError):
            return None

    def _copy_base(
        self, built: CellBuilds, base: Build, python: Path, out: Path
    ) -> tuple[CellBuilds, dict[Path, Path]]:
        place = out / f"{base.directory}-mixed"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(out / base.directory, place)
        mixed = msgspec.structs.replace(
            base,
            key=digest_of_document([base.key, str(python)]),
            directory=str(place.relative_to(out)),
        )
        return msgspec.structs.replace(built, head=mixed), {place: python}

    def _gate_mixture(
        self, built: CellBuilds, places: Mapping[Path, Path], tools: GateTools
    ) -> bool | None:
        gate = tools.rules.gate
        gate = msgspec.structs.replace(
            gate, seconds=min(gate.seconds, MAX_SECONDS_OF_ONE), extend=False, rare_launches=0.0
        )
        rules = GateRules(gate=gate)  # the question here is the margin, whatever is waived
        pins = self._locked[built.cell.model].pins.base
        base_python = self._made(tuple(pins.values())) / "bin" / "python"
        base = tools.context.out / (built.base.directory if built.base else "")
        benchmarker = FreshProcesses(
            self._scratch,
            tools.context.seed,
            limits=Limits(answer_seconds(gate), libraries=tuple(self._libraries)),
            pythons={**places, base: base_python},
        )
        run = measure(
            [built], benchmarker=benchmarker, rules=rules, context=tools.context, references={}
        )
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        (comparison,) = compare(run, gate) or (None,)
        decision = comparison.median if comparison is not None else None
        return {"fail": True, "pass": False}.get(decision or "")


def sentence(locked: LockedSides, packages: FoundPackages) -> str:
    """Returns the report's sentence on the packages that were found."""
    told = ", ".join(locked.both_versions(name) for name in packages.packages)
    count = len(locked.changed_names())
    if count == 1:
        return f"{told} is all that differs"
    if packages.is_one:
        return f"{told} did it, of {count} packages that differ"
    return f"one of {told}, or several together: {packages.why}"
