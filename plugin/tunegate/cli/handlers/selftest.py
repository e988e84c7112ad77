"""`tunegate selftest`: what the gate can decide on this machine, and whether it is right."""

from __future__ import annotations

from pathlib import Path

import onnx

from tunegate.cli.commands.comparing import SelftestOptions
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import PASS, UNFIT, ModelError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.selftest import Qualification, qualify
from tunegate.models.light_models import seeded_light
from tunegate.ports import BuildJob, ModelJob, Shapes
from tunegate.review import config_file
from tunegate.runtimes.builder import reference_builder
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output
from tunegate.wiring import opened_gate_tools

_MODEL = "squeezenet"
_COLUMNS = ("made slower by", "verdict", "measured", "launches", "seconds")


def run(options: SelftestOptions) -> int:
    """Returns 0 if the configured margin can be decided here and no gate was wrong, else 4. Needs
    no compiler: the model runs under ONNX Runtime. Raises ModelError, MeasurementError."""
    settings = options.settings
    config = _config(settings)
    with (
        opened_output(settings.out, "selftest") as out,
        opened_gate_tools(settings, config, FreshProcesses, out) as tools,
    ):
        artifact = _artifact(
            out.workdir,
            options.model,
            dict(options.shapes),
            config.targets[0],
            tools.context.seed,
        )
        found = qualify(
            artifact,
            benchmarker=tools.benchmarker,
            gate=config.gate,
            context=tools.context,
            seconds=60 * options.minutes,
        )
    if settings.as_json:
        write_json(found)
    else:
        _show(found, config.gate.margin_percent)
    return PASS if _is_fit(found, config.gate.margin_percent) else UNFIT


def _config(settings: Settings) -> Config:
    path = settings.config or settings.repository / config_file.CONFIG_FILE
    if settings.config is None and not path.exists():
        return Config(models=(ModelConfig(path="*.onnx"),), targets=(TargetConfig(name="cpu"),))
    return config_file.load_config(path)


def _artifact(
    workdir: Path, model: Path | None, shapes: Shapes, target: TargetConfig, seed: int
) -> Path:
    file = model
    if file is None:
        file = workdir / f"{_MODEL}.onnx"
        onnx.save(seeded_light(_MODEL, seed=0), file)
    job = BuildJob(
        model=ModelJob(file=file, path=file.name, shapes=shapes, target=target),
        records={},
        sources={},
        directory=workdir / "artifact",
    )
    (build,) = reference_builder(workdir / "reference", seed).build([job])
    if build.error is not None:
        raise ModelError(build.error)
    return workdir / "artifact"


def _show(found: Qualification, wanted_percent: float) -> None:
    margin = found.margin_percent
    show_table(
        f"Gates with a margin of {margin:g}%" if margin else "Gates with a margin of 20%",
        _COLUMNS,
        [
            (
                f"{each.percent:g}%",
                each.outcome + (" (WRONG)" if each in found.wrong else ""),
                f"{each.center:+.1f}% ({each.low:+.1f} to {each.high:+.1f}%)",
                each.launches,
                f"{each.seconds:.0f}",
            )
            for each in found.injected
        ],
    )
    seen = (
        f"{found.aa_launches} launches of one model against itself: spread "
        f"{found.spread_percent:.2f}%, {found.launch_seconds:.1f} s each."
    )
    show_lines([seen, advice(found, wanted_percent)])


def advice(found: Qualification, wanted_percent: float) -> str:
    """Returns one sentence on what to set, or what to do about the machine."""
    budget = f"{found.gate_seconds:.0f} s"
    if found.wrong:
        return (
            "A gate said what was not true: do not gate on this machine, something on it changes "
            "speed while it measures."
        )
    if found.margin_percent is None:
        return f"This machine cannot decide even 20% in {budget}: use a quieter one."
    margin = f"{found.margin_percent:g}%"
    if found.margin_percent > wanted_percent:
        return (
            f"This machine decides {margin} in {budget}, not {wanted_percent:g}%: set "
            f"gate.margin-percent: {found.margin_percent:g}, raise "
            "gate.seconds, or use a quieter one."
        )
    if found.margin_percent < wanted_percent:
        return (
            f"This machine decides {margin} in {budget}: gate.margin-percent could be "
            f"{found.margin_percent:g} instead of {wanted_percent:g}."
        )
    return f"This machine decides its margin of {margin} in {budget}."


def _is_fit(found: Qualification, wanted_percent: float) -> bool:
    margin = found.margin_percent
    return margin is not None and margin <= wanted_percent and not found.wrong
