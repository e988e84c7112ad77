"""Settings to the real things: the only place that constructs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tunegate.artifacts.builds import Runtime
from tunegate.artifacts.changes import Revisions
from tunegate.config import Config, TargetConfig
from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.bench.scoring_command import ScoringCommand
from tunegate.edges.cache.shared_cache import STATE, SharedCache
from tunegate.edges.clock import SystemClock, today
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.machine.cores import default_threads
from tunegate.edges.machine.device import ThisMachine
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.models.reader import GitModelReader
from tunegate.edges.output.directory import OutputDirectory
from tunegate.edges.output.shipping import BuildDirectories
from tunegate.edges.run_seed import new_seed
from tunegate.edges.terminal import progress
from tunegate.engine.tuner import EngineTuner
from tunegate.policy.waivers import NO_WAIVERS
from tunegate.ports import Benchmarker, Builder, Clock, Repository, Scorer
from tunegate.project import Review
from tunegate.runtimes.builder import OnnxRuntimeBuilder
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.programs import PROGRAMS
from tunegate.selection import shapes_for
from tunegate.settings import Settings
from tunegate.time_limits import answer_seconds, build_seconds
from tunegate.tools import Measuring, Tools
from tunegate.verdict.checks import Policies
from tunegate_cache.format.records import Provenance


@contextmanager
def opened_tools(
    settings: Settings,
    config: Config,
    repository: Repository,
    root: Path,
    revisions: Revisions,
    out: OutputDirectory,
    review: Review | None = None,
) -> Iterator[Tools]:
    """The real tools of one run. When it ends, only the logs of the working directory stay: errors
    in the report name them. After an exception all of it does."""
    workdir = out.empty_workdir()
    shown = progress()
    device = _device(config)
    clock = SystemClock()
    seed = _seed(settings)
    compiler = _compiler(workdir, config, seed)
    try:
        yield Tools(
            config=config,
            repository=repository,
            index=_index(config, device, root, review),
            compiler=compiler,
            builders=_builders(compiler, workdir, config, seed),
            shipping=BuildDirectories(),
            tuner=_tuner(config, device, clock, _source(root, revisions.head), workdir, seed),
            benchmarker=_benchmarker(workdir, config, seed),
            device=device,
            clock=clock,
            progress=shown,
            threads=max(target.threads or default_threads() for target in config.targets),
            out=out.path,
            workdir=workdir,
            seed=seed,
            policies=_policies(review, clock, settings),
            scorer=_scorer(settings),
            reader=GitModelReader(repository) if isinstance(repository, GitRepository) else None,
        )
    finally:
        shown.close()
        compiler.close()
    out.keep_logs()


@contextmanager
def opened_measuring(
    settings: Settings,
    config: Config,
    benchmarker: Callable[[Path, int], Benchmarker],
    out: OutputDirectory,
) -> Iterator[Measuring]:
    """What gates builds that exist; `benchmarker` gets a directory of its own, and the seed."""
    workdir = out.empty_workdir()
    shown = progress()
    seed = _seed(settings)
    try:
        yield Measuring(
            gate=config.gate,
            benchmarker=benchmarker(workdir / "bench", seed),
            shipping=BuildDirectories(),
            device=ThisMachine(config.targets[0].kind),
            clock=SystemClock(),
            progress=shown,
            out=out.path,
            seed=seed,
            policies=Policies(metric_margin=settings.metric_margin),
            scorer=_scorer(settings),
        )
    finally:
        shown.close()
    out.keep_logs()


def _seed(settings: Settings) -> int:
    return new_seed() if settings.seed is None else settings.seed


def _device(config: Config) -> ThisMachine:
    kinds = {target.kind for target in config.targets}
    return ThisMachine("cuda" if kinds == {"cuda"} else "llvm")


def _compiler(workdir: Path, config: Config, seed: int) -> MetaScheduleCompiler:
    limit_seconds = build_seconds(config.budget)
    return MetaScheduleCompiler(workdir / "compile", seed=seed, limit_seconds=limit_seconds)


def _builders(
    compiler: MetaScheduleCompiler, workdir: Path, config: Config, seed: int
) -> dict[Runtime, Builder]:
    limit_seconds = build_seconds(config.budget)
    scratch = workdir / "onnxruntime"
    onnxruntime = OnnxRuntimeBuilder(scratch, seed=seed, limit_seconds=limit_seconds)
    return {"tvm": compiler, "onnxruntime": onnxruntime}


def _benchmarker(workdir: Path, config: Config, seed: int) -> FreshProcesses:
    limit_seconds = answer_seconds(config.gate)
    scratch = workdir / "bench"
    return FreshProcesses(
        scratch,
        seed,
        _cuda_target(config),
        limit_seconds=limit_seconds,
        reference=reference_builder,
    )


def reference_builder(scratch: Path, seed: int) -> Builder:
    """Returns the builder for what others are held against."""
    return OnnxRuntimeBuilder(scratch, seed=seed)


def _cuda_target(config: Config) -> TargetConfig | None:
    """The first CUDA target: one machine measures one kind of GPU."""
    return next((target for target in config.targets if target.kind == "cuda"), None)


def _index(config: Config, device: ThisMachine, root: Path, review: Review | None) -> SharedCache:
    return SharedCache(
        config.cache,
        state=STATE.expanduser(),
        root=root,
        device=device.fingerprint(),
        pins=review.pins if review else None,
    )


def _source(root: Path, commit: str) -> Provenance:
    return Provenance(repository=root.name, commit=commit)


def _scorer(settings: Settings) -> Scorer | None:
    return ScoringCommand(settings.metric_command) if settings.metric_command else None


def _policies(review: Review | None, clock: Clock, settings: Settings) -> Policies:
    waivers = review.waivers if review else NO_WAIVERS
    return Policies(
        waivers=waivers.counting,
        pending_waivers=waivers.pending,
        today=today(clock),
        metric_margin=settings.metric_margin,
    )


def _tuner(
    config: Config,
    device: ThisMachine,
    clock: Clock,
    source: Provenance,
    workdir: Path,
    seed: int,
) -> EngineTuner:
    return EngineTuner(
        targets={target.name: target for target in config.targets},
        shapes=_Shapes(config),
        device=device.fingerprint(),
        toolchain=toolchain(),
        source=source,
        clock=clock,
        seed=seed,
        programs=PROGRAMS,
        scratch=workdir / "tune",
        on_ray=config.executor == "ray",
    )


class _Shapes(dict[str, dict[str, tuple[int, ...]]]):
    """Shapes of a model, looked up in the configuration when they are asked for."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._config = config

    def __missing__(self, path: str) -> dict[str, tuple[int, ...]]:
        return shapes_for(self._config, path)
