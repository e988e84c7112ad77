"""What a run works with: everything that touches the world, behind its port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tunegate.artifacts.builds import Runtime
from tunegate.config import Config, GateConfig
from tunegate.ports import (
    Benchmarker,
    Builder,
    Clock,
    Compiler,
    Device,
    ModelReader,
    Progress,
    Repository,
    Scorer,
    Shipping,
    TaskIndex,
    Tuner,
)
from tunegate.verdict.checks import NO_POLICIES, Policies


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What is needed to gate builds that exist. `seed` is the benchmarker's."""

    gate: GateConfig
    benchmarker: Benchmarker
    shipping: Shipping
    device: Device
    clock: Clock
    progress: Progress
    out: Path
    seed: int
    policies: Policies = NO_POLICIES
    scorer: Scorer | None = None


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a run works with. `out` is for files that stay, `workdir` for those that
    need not. `threads` is what the artifacts of this machine's targets run with,
    `seed` what all chance came from."""

    config: Config
    repository: Repository
    index: TaskIndex
    compiler: Compiler
    builders: Mapping[Runtime, Builder]
    shipping: Shipping
    tuner: Tuner
    benchmarker: Benchmarker
    device: Device
    clock: Clock
    progress: Progress
    threads: int
    out: Path
    workdir: Path
    seed: int
    policies: Policies = NO_POLICIES
    scorer: Scorer | None = None
    reader: ModelReader | None = None

    @property
    def measuring(self) -> Measuring:
        return Measuring(
            gate=self.config.gate,
            benchmarker=self.benchmarker,
            shipping=self.shipping,
            device=self.device,
            clock=self.clock,
            progress=self.progress,
            out=self.out,
            seed=self.seed,
            policies=self.policies,
            scorer=self.scorer,
        )
