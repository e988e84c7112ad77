"""Builds the real tools from the settings. Nothing else constructs them."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType

from tunegate import ports
from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.candidates import REFERENCE, Candidates, RuntimeName
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.ci.registry import run_address
from tunegate.config import Config
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.bench_process import Limits
from tunegate.measure.latency_commands import ScoringCommand
from tunegate.models.inputs.given_values import GivenValues
from tunegate.models.metric_commands import MetricCommands
from tunegate.models.model_inputs import inputs_of_file
from tunegate.models.reader import GitModelReader
from tunegate.plan.run_forecast import answer_seconds, build_seconds
from tunegate.project import Review, Subject
from tunegate.review.gate_rules import GateRules, Policies, Waivers, policies_under, with_configured
from tunegate.runtimes import registry
from tunegate.runtimes.builder import SavingBuilder, TooSlow, reference_builder
from tunegate.runtimes.runtime import OpenCompiler
from tunegate.settings import Settings
from tunegate.system.cache.shared_cache import SharedCache, cache_home, state_home
from tunegate.system.clock import SystemClock, new_seed, today
from tunegate.system.energy import energy_for
from tunegate.system.git.repository import GitRepository
from tunegate.system.machine.cores import default_threads
from tunegate.system.machine.device import ThisMachine
from tunegate.system.output.artifact_file import BuildDirectories
from tunegate.system.output.directory import OutputDirectory
from tunegate.system.progress.shown_progress import paced_progress
from tunegate.tools import GateTools, ModelSource, ReferenceRuntime, RunContext, Tools
from tunegate.tune.tuner import EngineTuner
from tunegate_cache.format.records import Provenance

NO_PYTHONS: Mapping[Path, Path] = MappingProxyType({})
NO_CANDIDATES: Candidates = MappingProxyType({})


@contextmanager
def opened_tools(
    settings: Settings,
    subject: Subject,
    out: OutputDirectory,
    runtimes: Collection[RuntimeName] = (),
    pythons: Mapping[Path, Path] = NO_PYTHONS,
    *,
    progress: ports.Progress | None = None,
) -> Iterator[Tools]:
    """Returns the tools of one run, with all runtimes or those named. Artifacts in `pythons` run
    under the Python of another environment. A part of other work passes its `progress`."""
    config, runtimes_here = subject.config, registry.installed_runtimes()
    offer = registry.offer_runtimes(config.targets, runtimes_here, only=runtimes)
    # What must be closed again: counters, the context and the compilers' children.
    with (
        energy_for(config) as energy,
        _opened_context(settings, _device(config, runtimes_here), out, energy, progress) as context,
        _opened_compilers(runtimes_here, out.workdir, config, context.seed) as compilers,
    ):
        for problem in (*runtimes_here.problems, *offer.problems):
            context.progress.warn(f"runtimes: {problem}.")
        # In the order of the steps: extract, look up, tune, build, gate. Every runtime builds; only
        # the one that tunes also lists tasks.
        origin = _origin(runtimes_here, subject, context)
        yield Tools(
            origin=origin,
            source=model_source(subject, out.workdir, offer.candidates),
            compiler=compilers[runtimes_here.tuning.name],
            index=_index(subject, origin),
            tuner=_tuner(runtimes_here.tuning.programs, origin, subject, context, out.workdir),
            builders={
                **_saving_builders(runtimes_here, out.workdir, config, context.seed),
                **compilers,
            },
            gate=GateTools(
                context=context,
                rules=_rules(subject.waivers, config, context.clock, settings),
                benchmarker=_benchmarker(out.workdir, config, context.seed, pythons),
                shipping=BuildDirectories(),
                scorer=_scorer(settings),
            ),
            reference=ReferenceRuntime(REFERENCE, registry.runtime_named(REFERENCE).title),
            threads=max(target.threads or default_threads() for target in config.targets),
        )


@contextmanager
def opened_gate_tools(
    settings: Settings,
    config: Config,
    benchmarker: Callable[[Path, int], ports.Benchmarker],
    out: OutputDirectory,
    rules: GateRules | None = None,
) -> Iterator[GateTools]:
    """Returns the tools that gate finished builds, by the configuration's rules or those given.
    `benchmarker` gets a private directory and the seed."""
    policies = Policies(metric_margin=settings.metric_margin)
    with _opened_context(settings, ThisMachine(config.targets[0].kind), out) as context:
        yield GateTools(
            context=context,
            rules=rules or GateRules(gate=config.gate, policies=policies),
            benchmarker=benchmarker(out.workdir / "bench", context.seed),
            shipping=BuildDirectories(),
            scorer=_scorer(settings),
        )


@contextmanager
def opened_upgrade_tools(
    settings: Settings, review: Review, out: OutputDirectory, pythons: Mapping[Path, Path]
) -> Iterator[GateTools]:
    """Returns the tools that gate the upgraded models of a review. Artifacts in `pythons` run under
    the Python of another environment."""
    config = review.config

    def benchmarker(scratch: Path, seed: int) -> FreshProcesses:
        return FreshProcesses(scratch, seed, limits=bench_limits(config), pythons=pythons)

    rules = with_configured(judging_rules(settings, review), config, review.changes)
    with opened_gate_tools(settings, config, benchmarker, out, rules) as tools:
        yield tools


@contextmanager
def _opened_context(
    settings: Settings,
    device: ports.Device,
    out: OutputDirectory,
    energy: ports.EnergyCounter = ports.NO_COUNTER,
    progress: ports.Progress | None = None,
) -> Iterator[RunContext]:
    """Returns the context, with an empty working directory. When the run ends only its logs stay,
    because errors in the report name them. After an exception everything stays."""
    out.empty_workdir()
    pacing = paced_progress(state_home() / "paces.json")
    with pacing if progress is None else nullcontext(progress) as current:
        yield RunContext(
            device=device,
            clock=SystemClock(),
            progress=current,
            out=out.path,
            seed=new_seed() if settings.seed is None else settings.seed,
            energy=energy,
        )
    out.keep_logs()


def model_source(
    subject: Subject, workdir: Path, candidates: Candidates = NO_CANDIDATES
) -> ModelSource:
    """Returns the models of the subject as files."""
    repository = subject.repository
    return ModelSource(
        config=subject.config,
        config_before=subject.config_before,
        repository=repository,
        candidates=candidates,
        workdir=workdir,
        read_inputs=inputs_of_file,
        read_values=GivenValues(repository, workdir / "inputs").rules,
        reader=GitModelReader(repository) if isinstance(repository, GitRepository) else None,
        case_scorer=MetricCommands(
            repository,
            subject.rules_at or subject.commit,
            checkout=subject.root,
            scratch=workdir / "metrics",
        ),
    )


def _device(config: Config, runtimes: registry.Installed) -> ThisMachine:
    kinds = {target.kind for target in config.targets}
    return ThisMachine("cuda" if kinds == {"cuda"} else "llvm", runtimes.versions())


@contextmanager
def _opened_compilers(
    runtimes: registry.Installed, workdir: Path, config: Config, seed: int
) -> Iterator[dict[RuntimeName, OpenCompiler]]:
    limit_seconds = build_seconds(config.budget)
    with ExitStack() as stack:
        compilers = {}
        for runtime in filter(registry.tunes, runtimes.runtimes):
            scratch = workdir / "compile" / runtime.name
            compiler = runtime.compiler(scratch, seed=seed, limit_seconds=limit_seconds)
            compilers[runtime.name] = stack.enter_context(closing(compiler))
        yield compilers


def _saving_builders(
    runtimes: registry.Installed, workdir: Path, config: Config, seed: int
) -> dict[RuntimeName, ports.Builder]:
    limit_seconds = build_seconds(config.budget)
    too_slow: TooSlow = {}
    return {
        runtime.name: SavingBuilder(
            runtime,
            workdir / "save" / runtime.name,
            seed=seed,
            limit_seconds=limit_seconds,
            libraries=config.custom_operators,
            too_slow=too_slow,
        )
        for runtime in filter(registry.saves, runtimes.runtimes)
    }


def _benchmarker(
    workdir: Path, config: Config, seed: int, pythons: Mapping[Path, Path]
) -> FreshProcesses:
    # One machine measures one kind of GPU.
    target = next((target for target in config.targets if target.kind == "cuda"), None)
    return FreshProcesses(
        workdir / "bench",
        seed,
        target,
        limits=bench_limits(config),
        reference=partial(reference_builder, libraries=config.custom_operators),
        pythons=pythons,
    )


def bench_limits(config: Config) -> Limits:
    """Returns the limits of the processes that measure under this configuration."""
    return Limits(
        answer_seconds(config.gate),
        libraries=tuple(config.custom_operators),
        times_load=config.gate.load_margin_percent is not None,
        launch_seconds=config.gate.seconds,
    )


def _index(subject: Subject, origin: RecordOrigin) -> SharedCache:
    return SharedCache(
        subject.config.cache,
        state=state_home(),
        copies=cache_home(),
        root=subject.root,
        device=origin.device,
        toolchain=origin.toolchain,
        pins=subject.pins,
    )


def _scorer(settings: Settings) -> ports.Scorer | None:
    return ScoringCommand(settings.metric_command) if settings.metric_command else None


def judging_rules(settings: Settings, review: Review) -> GateRules:
    """Returns the rules for measurements from elsewhere. Nothing of this machine is needed."""
    return _rules(review.waivers, review.config, SystemClock(), settings)


def _rules(waivers: Waivers, config: Config, clock: ports.Clock, settings: Settings) -> GateRules:
    policies = policies_under(waivers, today(clock), settings.metric_margin)
    return GateRules(gate=config.gate, policies=policies)


def _origin(runtimes: registry.Installed, subject: Subject, context: RunContext) -> RecordOrigin:
    return RecordOrigin(
        device=context.device.fingerprint(),
        toolchain=runtimes.tuning.toolchain(),
        source=record_source(subject, os.environ),
        installed=digest_of_document(runtimes.versions()),
    )


def record_source(subject: Subject, environment: Mapping[str, str]) -> Provenance:
    """Returns what records say of their origin. The run is the number that its page ends with."""
    return Provenance(
        repository=subject.name or subject.root.name,
        commit=subject.commit,
        run=run_address(environment).rstrip("/").rpartition("/")[2],
    )


def _tuner(
    programs: ports.Programs,
    origin: RecordOrigin,
    subject: Subject,
    context: RunContext,
    workdir: Path,
) -> ports.Tuner:
    return EngineTuner(
        config=subject.config,
        origin=origin,
        clock=context.clock,
        seed=context.seed,
        programs=programs,
        scratch=workdir / "tune",
    )
