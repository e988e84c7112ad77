from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tests.support.small_onnx import conv_model, save

from tunegate.errors import ModelError
from tunegate.runtimes.registry import installed_runtimes
from tunegate.system.machine.device import ThisMachine
from tunegate_study.design.study_config import StudyConfig
from tunegate_study.run.groups import CellGroup, target_of, versions_of
from tunegate_study.run.kept_cells import KeptCells, cell_key
from tunegate_study.run.subject import Chosen, choose_cells
from tunegate_study.run.work import StudyWork
from tunegate_study.studies import CellSetting, StudyCell
from tunegate_study.study_file import parse_study

AXES = "axes: {runtime: [onnxruntime, tvm], tuning: [untuned, 8], threads: [1, 2]}\n"


class ScriptedBuilder:
    """Builds nothing; whoever is `refused` has no reference."""

    def __init__(self, directory: Path, refused: str = "") -> None:
        self.directory, self._refused = directory, refused
        self.groups: list[CellGroup] = []

    def build(self, group: CellGroup, minutes: float) -> Sequence[StudyCell]:
        self.groups.append(group)
        return [
            StudyCell(
                key=key,
                setting=setting,
                versions=versions_of(setting["runtime"]),
                device=ThisMachine("llvm").fingerprint(),
                digest="d",
            )
            for key, setting in group.cells.items()
        ]

    def reference(self, group: CellGroup) -> Path:
        if self._refused:
            raise ModelError(self._refused)
        return Path("reference")


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    save(conv_model(), tmp_path / "m.onnx")
    return parse_study(f"models: [{tmp_path}/m.onnx]\n{AXES}rounds: 3\n", "s")


def subject(config: StudyConfig) -> tuple[Chosen, dict[str, CellSetting]]:
    found = choose_cells(config, "s", installed_runtimes())
    models, targets = found.models, found.targets
    return found, {
        cell_key(each, models["m"], target_of(each, targets)): each for each in found.cells
    }


def finish(
    config: StudyConfig, kept: KeptCells, effects: Sequence[float | None], refused: str = ""
) -> tuple[dict[str, StudyCell], ScriptedBuilder]:
    found, keys = subject(config)
    builder = ScriptedBuilder(Path("builds"), refused)
    return StudyWork(config, found, kept, builder, ScriptedPairs(effects)).finish(keys), builder


def test_a_second_run_builds_and_launches_nothing(config: StudyConfig, tmp_path: Path) -> None:
    kept = KeptCells(tmp_path / "cells")
    cells, builder = finish(config, kept, [0.1] * 18)
    assert len(builder.groups) == 6
    assert all(len(each.launches) == 3 for each in cells.values())
    again, builder = finish(config, kept, [])
    assert (again, builder.groups) == (cells, [])


def test_another_version_or_what_may_pass_is_built_again(
    config: StudyConfig, tmp_path: Path
) -> None:
    kept = KeptCells(tmp_path / "cells")
    cells, _ = finish(config, kept, [0.1] * 18)
    first, second, third, *_ = cells.values()
    kept.keep(msgspec.structs.replace(first, versions={"other": "1"}))
    kept.keep(msgspec.structs.replace(second, reason="it died", may_pass=True))
    kept.keep(msgspec.structs.replace(third, reason="no such operator"))
    again, builder = finish(config, kept, [0.1] * 6)
    assert len(builder.groups) == 2
    assert again[third.key].reason == "no such operator"


def test_a_model_that_the_reference_does_not_run_says_so(
    config: StudyConfig, tmp_path: Path
) -> None:
    cells, _ = finish(config, KeptCells(tmp_path / "cells"), [], refused="no such operator")
    assert {each.reason for each in cells.values()} == {"not measured: no such operator"}


def test_nothing_is_begun_when_the_minutes_are_over(config: StudyConfig, tmp_path: Path) -> None:
    short = msgspec.structs.replace(
        config, budget=msgspec.structs.replace(config.budget, minutes=1e-9)
    )
    found, keys = subject(config)
    builder = ScriptedBuilder(Path("builds"))
    work = StudyWork(short, found, KeptCells(tmp_path / "cells"), builder, ScriptedPairs([]))
    cells = work.finish(keys)
    assert not builder.groups
    assert all(not each.launches and not each.reason for each in cells.values())
