"""Times the builds of a model in float32, bfloat16 and int8 with TVM: a process for each, and one
for all, which has the model open and compiles each kernel once.

    python -m benchmarks.processes.precisions_built squeezenet ppocr_v2_cls [--real DIRECTORY]

A model that `init_to_gate.py` collects in DIRECTORY is built at the sizes that `tunegate init`
guesses, any other name is one of our models. Nothing is tuned: the prior picks schedules, and those
that are slower inside the model go. Prints seconds of a processor, of the children alone, so that
what else runs on the machine counts little.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.kit.collected import guessed
from benchmarks.kit.command import command_line
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.candidates import PRECISION
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate_cache.format.records import WorkloadKey

PRECISIONS = ("", "bfloat16", "int8")
SAMPLES = 8
"""Inputs on which a build in other numbers is run, as it is in a gate, but fewer."""


def main() -> None:
    options = command_line(__doc__, "models...", real="")
    heading("model | kernels | float32 alone, s | a process each, s | one for all, s | share")
    for name in options.models:
        with TemporaryDirectory() as scratch:
            place = Path(scratch)
            file = Path(options.real) / name / "model.onnx"
            file = file if options.real and file.is_file() else saved(name, place)
            model = ModelJob(file=file, path=name, shapes=guessed(file), target=TARGET)
            with closing(MetaScheduleCompiler(place / "listing", seed=1)) as compiler:
                (tasks,) = compiler.tasks([model])
            if isinstance(tasks, Exception):
                raise tasks
            sources: dict[WorkloadKey, ScheduleSource] = {task.key: "prior" for task in tasks}
            alone, each, together = (
                processor_seconds(model, sources, place / how, precisions, stays=how == "one")
                for how, precisions in (
                    ("alone", PRECISIONS[:1]),
                    ("each", PRECISIONS),
                    ("one", PRECISIONS),
                )
            )
            cells = (f"{seconds:.1f}" for seconds in (alone, each, together))
            row(name, len(tasks), *cells, f"{together / each:.2f}")


def processor_seconds(
    model: ModelJob,
    sources: dict[WorkloadKey, ScheduleSource],
    place: Path,
    precisions: Sequence[str],
    *,
    stays: bool,
) -> float:
    """The processor seconds of builds in these precisions, one after the other."""
    before = children_seconds()
    with closing(MetaScheduleCompiler(place / "scratch", seed=1)) as compiler:
        for precision in precisions:
            job = BuildJob(
                model=model,
                records={},
                sources=sources,
                directory=place / f"built-{precision}",
                settings={PRECISION: precision} if precision else {},
                samples=SAMPLES if precision else 0,
                is_followed=stays and precision != precisions[-1],
            )
            (build,) = compiler.build([job])
            if build.error is not None:
                print(build.error)
    return children_seconds() - before


def children_seconds() -> float:
    """Returns the processor seconds of the children that have ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


if __name__ == "__main__":
    main()
