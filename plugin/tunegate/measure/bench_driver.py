"""`ports.Benchmarker` by pairs of fresh processes, timed in alternating blocks."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType

from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.histogram import Histogram, histogram
from tunegate.artifacts.inputs import KnownInputs, ShapedModel
from tunegate.artifacts.measurements import LayersLaunch
from tunegate.config import TargetConfig
from tunegate.errors import MeasurementError
from tunegate.measure.bench_messages import ProfileBoth, ProfiledBoth, Sides
from tunegate.measure.bench_process import ALONE, Devices, Limits, Process, start_of
from tunegate.measure.pair_bench import PairBench, block_size
from tunegate.models.inputs.agreement import agree_on_inputs
from tunegate.ports import Bench, Benchmarker, Builder, BuildJob, ModelJob, Turns
from tunegate.system.clock import derive_seed
from tunegate.system.output.artifact_file import ArtifactFile

ReferenceBuilder = Callable[[Path, int], Builder]
"""Makes a builder for the reference, from a private directory and a seed."""
_REFERENCE_INFERENCES = 50
_PROFILED_INFERENCES = 10


class FreshProcesses:
    """Measures on this machine; GPU artifacts on the GPU of the target `cuda`. Inputs and orders
    come from `seed`. `reference_ms` measures what `reference` builds. An artifact in `pythons` runs
    under that Python, with the packages of its environment."""

    def __init__(
        self,
        scratch: Path,
        seed: int,
        cuda: TargetConfig | None = None,
        *,
        limits: Limits = ALONE,
        reference: ReferenceBuilder | None = None,
        pythons: Mapping[Path, Path] = MappingProxyType({}),
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        by_path = {str(artifact.absolute()): python for artifact, python in pythons.items()}
        self._limits = limits._replace(pythons=by_path)
        self._reference = reference
        self._scratch = scratch
        self._devices = Devices(cuda)
        self._seed = seed
        self._alone = derive_seed(seed, "alone")
        self._pairs = 0

    def pair(
        self,
        base: Path,
        head: Path,
        *,
        slowdown_percent: float = 0.0,
        compares_outputs: bool = False,
    ) -> Bench:
        self._pairs += 1
        seed = derive_seed(self._seed, "pair", self._pairs)
        limits = self._limits._replace(processes=2)
        return PairBench(
            Sides(base, head),
            self._scratch,
            seed,
            self._devices,
            slowdown_percent=slowdown_percent,
            compares_outputs=compares_outputs,
            limits=limits,
        )

    def single_ms(self, artifact: Path) -> float:
        with self._process(artifact) as process:
            return _median_ms(process)

    def times(self, artifact: Path, inferences: int) -> Histogram:
        with self._process(artifact) as process:
            process.start()
            return histogram(process.block_ms(inferences, self._limits.seconds / 2))

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        with self._process(artifact) as process:
            return process.operators_ms(_PROFILED_INFERENCES)

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        began = time.monotonic()
        return layers_launch(self.profiled_both(base, head, number, turns), began)

    def profiled_both(self, base: Path, head: Path, number: int, turns: Turns) -> ProfiledBoth:
        """Returns the times of all layers of both sides in one fresh process. Raises
        MeasurementError."""
        artifacts = (str(base.absolute()), str(head.absolute()))
        if any(artifact in self._limits.pythons for artifact in artifacts):
            raise MeasurementError("base and head run in environments of their own")
        seed = derive_seed(self._seed, "layers", number)
        inputs = agree_on_inputs(ArtifactFile.read(base).inputs, ArtifactFile.read(head).inputs)
        request = ProfileBoth(
            artifacts=artifacts,
            inputs=inputs,
            threads=ArtifactFile.read(head).threads,
            inferences=turns.inferences,
            rounds=turns.rounds,
            seed=seed,
            first=SIDES[derive_seed(seed, "first") % 2],
        )
        with self._devices.of(base, head) as device:
            start = start_of(head, seed)
            log = self._scratch / "bench.log"
            with closing(Process(start, log, device.variables, self._limits)) as process:
                return process.layers_of_both(request)

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float:
        """Returns the milliseconds of the reference of a model, built here, on inputs as they are
        given."""
        if self._reference is None:
            raise MeasurementError("there is no reference to measure")
        with tempfile.TemporaryDirectory(dir=self._scratch) as into:
            job = BuildJob(
                model=ModelJob(
                    file=model.file,
                    path=model.file.name,
                    shapes=model.shapes,
                    target=TargetConfig(name="reference", threads=threads),
                    inputs=KnownInputs(given=dict(model.given)),
                ),
                records={},
                sources={},
                directory=Path(into) / "artifact",
            )
            (build,) = self._reference(Path(into) / "scratch", self._alone).build([job])
            if build.error is not None:
                raise MeasurementError(build.error)
            return self.single_ms(job.directory)

    @contextmanager
    def _process(self, artifact: Path) -> Iterator[Process]:
        with self._devices.of(artifact) as device:
            start = start_of(artifact, self._alone)
            log = self._scratch / "bench.log"
            with closing(Process(start, log, device.variables, self._limits)) as process:
                yield process


_SHOWN_LAYERS, _SHOWN_OF_NAME = 8, 60
_SHORTEST_MS = 1e-9
"""The shortest time that an artifact holds."""


def layers_launch(profile: ProfiledBoth, began: float) -> LayersLaunch:
    """Returns what the layers that differ took, in the time since `began`. Raises
    MeasurementError if nothing of a side could be timed."""
    base, head = (
        {name: ms for name, ms in side.items() if name in differing}
        for side, differing in zip(profile.milliseconds, profile.differing, strict=True)
    )
    differences = {
        name: head.get(name, 0.0) - base.get(name, 0.0) for name in dict.fromkeys([*head, *base])
    }
    names = sorted(differences, key=lambda name: -abs(differences[name]))[:_SHOWN_LAYERS]
    whole_ms, base_ms, head_ms = (
        sum(times.values()) for times in (profile.milliseconds[0], base, head)
    )
    if min(whole_ms, whole_ms - base_ms + head_ms) < _SHORTEST_MS:
        raise MeasurementError("no layer could be timed")
    return LayersLaunch(
        whole_ms=whole_ms,
        base_ms=base_ms,
        head_ms=head_ms,
        seconds=time.monotonic() - began,
        largest={name[:_SHOWN_OF_NAME]: differences[name] for name in names},
    )


def _median_ms(process: Process) -> float:
    milliseconds = process.start()
    inferences = min(_REFERENCE_INFERENCES, block_size(milliseconds, milliseconds))
    return statistics.median(process.block_ms(inferences))


_: type[Benchmarker] = FreshProcesses
