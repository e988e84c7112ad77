"""Does the processor's time to load fail equal models? Each cell loads one model as both sides, in
fresh processes; the side that starts first alternates. Slowdowns are added to what was measured.

    python -m benchmarks.gate.load_times [--models squeezenet transformer] [--cells 10]
"""

import math
import statistics
from pathlib import Path

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.tables import heading, row
from tunegate.config import TargetConfig
from tunegate.decide.decision import bounds, decide_cell
from tunegate.measure.bench_process import Limits, Process, start_of
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder

MARGINS = (5, 10, 25, 50)
ANALYSES = 3
"""So many times the gate looks at its first nine launches."""


def main() -> None:
    given = command_line(__doc__, models=["squeezenet", "transformer"], cells=10, launches=8)
    heading("model | margin | cells | fail | pass | twice the margin fails", words=(0,))
    with scratch_folder() as scratch:
        for model in given.models:
            artifact = built(model, scratch)
            cells = [effects(artifact, scratch, given.launches) for _ in range(given.cells)]
            for margin in MARGINS:
                equal = [decided(cell, margin) for cell in cells]
                added = math.log1p(margin / 50)
                slower = [decided([each + added for each in cell], margin) for cell in cells]
                failed, passed = equal.count("fail"), equal.count("pass")
                row(model, f"{margin}%", len(cells), failed, passed, slower.count("fail"))
            spread = statistics.stdev(effect for cell in cells for effect in cell)
            print(f"{model}: one launch differs by {100 * spread:.1f}%")


def built(model: str, scratch: Path) -> Path:
    job = BuildJob(
        model=ModelJob(
            file=saved(model, scratch),
            path="m.onnx",
            shapes={},
            target=TargetConfig(name="cpu", threads=1),
        ),
        records={},
        sources={},
        directory=scratch / f"{model}-artifact",
    )
    (build,) = reference_builder(scratch / f"{model}-build", 1).build([job])
    assert build.error is None, build.error
    return job.directory


def effects(artifact: Path, scratch: Path, launches: int) -> list[float]:
    """Returns the logarithm of head over base in each launch."""
    return [effect(artifact, scratch, is_base_first=number % 2 == 0) for number in range(launches)]


def effect(artifact: Path, scratch: Path, *, is_base_first: bool) -> float:
    first, second = load_ms(artifact, scratch), load_ms(artifact, scratch)
    ratio = math.log(second / first)
    return ratio if is_base_first else -ratio


def load_ms(artifact: Path, scratch: Path) -> float:
    limits = Limits(times_load=True)
    process = Process(start_of(artifact, 1, warm_up_seconds=0.0), scratch / "log", {}, limits)
    try:
        process.start()
        assert process.load_ms is not None
        return process.load_ms
    finally:
        process.close()


def decided(effects: list[float], margin_percent: float) -> str:
    found = bounds(effects, analyses=ANALYSES, cells=1, fail_error=0.01)
    return decide_cell(found, math.log1p(margin_percent / 100))


if __name__ == "__main__":
    main()
