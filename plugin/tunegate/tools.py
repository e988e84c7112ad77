"""The tools of a run, by purpose: everything that touches the world, behind its port."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tunegate import ports
from tunegate.artifacts.candidates import Candidates, RuntimeName
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.config import Config
from tunegate.review.gate_rules import GateRules


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The surroundings of a stage: machine, clock, terminal, the directory `out` of files that
    stay, the seed of all randomness, and the energy counters."""

    device: ports.Device
    clock: ports.Clock
    progress: ports.Progress
    out: Path
    seed: int
    energy: ports.EnergyCounter = ports.NO_COUNTER


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """The models of base and head. `config` says what is wanted of each, `config_before` what the
    base said, `candidates` what may run it. `workdir` holds their files during the run.
    `read_inputs` reads these files, `read_values` those given for inputs. Without a `reader` there
    are no earlier bases, without a `case_scorer` no metrics."""

    config: Config
    repository: ports.Repository
    candidates: Candidates
    workdir: Path
    read_inputs: ports.ReadInputs
    read_values: ports.ReadValues
    reader: ports.ModelReader | None = None
    case_scorer: ports.CaseScorer | None = None
    config_before: Config | None = None


@dataclass(frozen=True, kw_only=True)
class GateTools:
    """The tools that gate finished builds: choose the runtime, measure, decide. `origin` tells
    which records are of an older toolchain, where something is compiled."""

    context: RunContext
    rules: GateRules
    benchmarker: ports.Benchmarker
    shipping: ports.Shipping
    scorer: ports.Scorer | None = None
    origin: RecordOrigin | None = None


class ReferenceRuntime(NamedTuple):
    """The reference runtime, whose times stand beside the others."""

    runtime: RuntimeName
    title: str


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The tools of every stage. `source` and `compiler` extract, `index` resolves, `tuner` tunes,
    `builders` build, `gate` does the rest. The times of `reference` are with `threads`."""

    source: ModelSource
    compiler: ports.Compiler
    index: ports.TaskIndex
    tuner: ports.Tuner
    builders: Mapping[RuntimeName, ports.Builder]
    reference: ReferenceRuntime
    origin: RecordOrigin
    gate: GateTools
    threads: int

    @property
    def config(self) -> Config:
        return self.source.config

    @property
    def context(self) -> RunContext:
        return self.gate.context
