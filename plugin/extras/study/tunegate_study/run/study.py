"""`tunegate study FILE`: builds, measures and reports the cells of a study."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tunegate.artifacts import artifact_io
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.cli.parse import suggestion
from tunegate.errors import INCONCLUSIVE, PASS, ConfigError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.report.units import duration
from tunegate.runtimes.registry import installed_runtimes
from tunegate.system.clock import new_seed
from tunegate.system.machine.device import ThisMachine
from tunegate.system.output.directory import CELLS, STUDY, OutputDirectory, opened_output
from tunegate.wording import plural
from tunegate_study.command import StudyOptions
from tunegate_study.design.cost import estimated_seconds
from tunegate_study.design.measured import MODEL
from tunegate_study.design.model_matrix import varied_axes
from tunegate_study.design.shards import cells_of_shard
from tunegate_study.design.study_config import StudyConfig
from tunegate_study.design.summary import StudiedCells, is_finished, summarize
from tunegate_study.render import markdown, page
from tunegate_study.run.builds import GroupBuilder
from tunegate_study.run.groups import target_of
from tunegate_study.run.kept_cells import KeptCells, cell_key
from tunegate_study.run.subject import Chosen, choose_cells
from tunegate_study.run.work import StudyWork
from tunegate_study.studies import CellSetting, Study, StudyCell
from tunegate_study.study_file import load_study

_PAGES = {"study.md": markdown.render, "study.html": page.render}


def run(options: StudyOptions) -> int:
    """Writes study.json, study.md and study.html; a shard writes only its cells. Raises ConfigError
    before anything is built. The next run continues what is unfinished when the minutes are up."""
    config = load_study(options.file)
    found = choose_cells(config, str(options.file), installed_runtimes())
    asked = _selected_cells(found, options, config)
    if options.is_plan:
        _show_plan(found, asked, config)
        return PASS
    with opened_output(options.settings.out, "study") as out:
        keys = _keys(found, asked)
        shown = keys if options.shard else _keys(found, found.cells)
        kept = KeptCells(out.path / STUDY / CELLS)
        cells = {key: kept.of(key) or _missing(key, shown) for key in shown}
        if not options.is_report:
            bench = FreshProcesses(out.path / STUDY / "bench", new_seed())
            builder = GroupBuilder(options.settings, out)
            cells |= StudyWork(config, found, kept, builder, bench).finish(keys)
        study = _summarize(options, config, found, [cells[key] for key in shown])
        if options.shard is None:
            _write(out, study)
    if options.settings.as_json:
        write_json(study)
    else:
        show_lines(_lines(options, study))
    is_done = all(is_finished(cells[key], config.rounds) for key in keys)
    return PASS if is_done else INCONCLUSIVE


def _selected_cells(
    subject: Chosen, options: StudyOptions, config: StudyConfig
) -> tuple[CellSetting, ...]:
    """Returns the cells that the command line names. Raises ConfigError for an unknown level."""
    levels = {axis.name: axis.levels for axis in subject.design.axes}
    for axis, level in options.only:
        if axis not in levels:
            raise ConfigError(f"--only {axis}={level}: no such axis.{suggestion(axis, levels)}")
        if level not in levels[axis]:
            hint = suggestion(level, levels[axis]) or f" Known: {', '.join(levels[axis])}."
            raise ConfigError(f"--only {axis}={level}: no such level.{hint}")
    wanted: dict[str, set[str]] = {}
    for axis, level in options.only:
        wanted.setdefault(axis, set()).add(level)
    cells = tuple(
        cell
        for cell in subject.cells
        if all(cell[axis] in allowed for axis, allowed in wanted.items())
    )
    if not cells:
        raise ConfigError("--only: no cell of this study has all of these levels. See --plan.")
    if options.shard is None:
        return cells
    return cells_of_shard(cells, *options.shard, subject.compilers, config.rounds)


def _keys(subject: Chosen, cells: Sequence[CellSetting]) -> dict[str, CellSetting]:
    return {
        cell_key(cell, subject.models[cell[MODEL]], target_of(cell, subject.targets)): cell
        for cell in cells
    }


def _missing(key: str, keys: Mapping[str, CellSetting]) -> StudyCell:
    """Returns a cell that nobody has built."""
    return StudyCell(key=key, setting=keys[key])


def _summarize(
    options: StudyOptions, config: StudyConfig, studied: Chosen, cells: Sequence[StudyCell]
) -> Study:
    subject = StudiedCells(
        file=str(options.file),
        rounds=config.rounds,
        design=studied.design,
        repeats=studied.repeats,
        environment=dict(ThisMachine(config.targets[0].kind).environment()),
    )
    axes = [axis.name for axis in varied_axes(studied.design.axes)]
    return summarize(subject, cells, [_command(options.file, cell, axes) for cell in cells])


def _command(file: Path, cell: StudyCell, axes: Sequence[str]) -> str:
    levels = [f"--only={axis}={cell.setting[axis]}" for axis in axes]
    return shlex.join(["tunegate", "study", str(file), *levels])


def _write(out: OutputDirectory, study: Study) -> None:
    artifact_io.write(out.path / "study.json", study)
    for name, render in _PAGES.items():
        artifact_io.write_text(out.path / name, render(study))


def _show_plan(subject: Chosen, cells: Sequence[CellSetting], config: StudyConfig) -> None:
    axes = [axis.name for axis in varied_axes(subject.design.axes)]
    rows = ([cell[axis] for axis in axes] for cell in cells)
    show_table(f"{subject.design.kind}: cells", axes, rows)
    seconds = estimated_seconds(cells, subject.compilers, config.rounds)
    what = f"{plural(len(cells), 'cell')} of {subject.design.possible} possible ones"
    left = (f"{plural(each.count, 'setting')}: {each.reason}" for each in subject.design.left_out)
    told = (f"left out: {each}" for each in left)
    show_lines((f"{what}, about {duration(seconds)}", *told))


def _lines(options: StudyOptions, study: Study) -> Iterator[str]:
    done = sum(1 for cell in study.cells if cell.launches)
    yield f"{plural(done, 'cell')} of {len(study.cells)} measured, {study.rounds} rounds"
    for cell in study.cells:
        if cell.reason:
            yield f"not built: {' '.join(cell.setting.values())}: {cell.reason}"
    if study.unfinished:
        yield (
            f"{plural(study.unfinished, 'cell')} not finished: the minutes were over, or another "
            "shard has them. Run the same command again: it goes on from there"
        )
    if options.shard is None:
        yield f"{options.settings.out / 'study.html'} has the effects"
