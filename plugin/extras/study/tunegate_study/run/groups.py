"""Groups cells that are built together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tunegate import __version__
from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.candidates import REFERENCE, CandidateBuild
from tunegate.config import TargetConfig
from tunegate.runtimes.registry import runtime_named
from tunegate_study.design.measured import (
    ALGORITHM,
    LAYOUT,
    MODEL,
    PRECISION,
    RUNTIME,
    TARGET,
    THREADS,
    VARIANT,
    as_key,
    without,
)
from tunegate_study.design.possible import candidate_for
from tunegate_study.design.study_config import GIVEN_FILE, StudiedModel
from tunegate_study.run.kept_cells import folder_name, model_digest
from tunegate_study.run.subject import Chosen
from tunegate_study.studies import CellSetting


class CellGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that are built from the same schedules: they differ only in runtime and precision.
    `place` is a directory for their tuning, `reference` one for what they are compared with."""

    model: StudiedModel
    target: TargetConfig
    cells: Mapping[str, CellSetting]
    candidates: Mapping[str, CandidateBuild]
    place: str
    reference: str

    @property
    def setting(self) -> CellSetting:
        return next(iter(self.cells.values()))

    @property
    def file(self) -> Path:
        return Path(self.model.files[self.setting[VARIANT]])


def groups_of(subject: Chosen, cells: Mapping[str, CellSetting]) -> list[CellGroup]:
    """Returns the groups of these cells, by their keys. Compiled cells are separate: only they need
    the schedules."""
    found: dict[tuple[object, ...], dict[str, CellSetting]] = {}
    for key, setting in cells.items():
        is_compiled = setting[RUNTIME] in subject.compilers
        shared = as_key(without(setting, (RUNTIME, PRECISION)))
        found.setdefault((shared, is_compiled), {})[key] = setting
    return [_group(subject, each) for each in found.values()]


def _group(subject: Chosen, cells: Mapping[str, CellSetting]) -> CellGroup:
    setting = next(iter(cells.values()))
    model = subject.models[setting[MODEL]]
    shared = without(setting, (RUNTIME, PRECISION))
    candidates = {
        key: candidate
        for key, each in cells.items()
        if (candidate := candidate_for(each, subject.offers)) is not None
    }
    return CellGroup(
        model=model,
        target=target_of(setting, subject.targets),
        cells=cells,
        candidates=candidates,
        place=digest_of_document(shared),
        reference=_reference(model),
    )


def _reference(model: StudiedModel) -> str:
    """Returns the reference's name: another file, or another version of the reference, is another
    one."""
    asked = [
        model_digest(Path(model.files[GIVEN_FILE])),
        dict(model.dims),
        versions_of(REFERENCE),
    ]
    return f"{folder_name(model.name)}-{digest_of_document(asked)}"


def target_of(setting: CellSetting, targets: Mapping[str, TargetConfig]) -> TargetConfig:
    """Returns the target, changed as the cell says."""
    own = targets[setting[TARGET]]
    return msgspec.structs.replace(
        own,
        threads=int(setting[THREADS]),
        layout=own.layout if setting[LAYOUT] == "auto" else setting[LAYOUT],
        algorithm=own.algorithm if setting[ALGORITHM] == "auto" else setting[ALGORITHM],
    )


def versions_of(runtime: str) -> dict[str, str]:
    """Returns the versions that decide a build's time, including the reference's."""
    names = dict.fromkeys((runtime, REFERENCE))
    found = {name: v for each in names for name, v in runtime_named(each).versions().items()}
    return {**found, "tunegate": __version__}
