"""The search of a tuning run: one child for each two dozen workers, every
task always with the same one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.cost_model.experience import Sketch
from tunegate.edges.machine.cores import usable_cores
from tunegate.edges.processes.memory_limit import memory_limit
from tunegate.engine.protocol import OpenModels, Propose, Proposed
from tunegate.engine.search_child import SearchChild

_WORKERS_OF_ONE = 24
"""A candidate is found in 0.03 s of CPU and takes a worker a second or more."""


Describe = Callable[[str, Mapping[str, Sketch]], None]
"""Is told the templates of a workload, each time that candidates are proposed for it."""


def untold(workload: str, sketches: Mapping[str, Sketch]) -> None:
    """Nobody wants to know."""


class SearchProgram(NamedTuple):
    """The module that a child runs, and who is told what it says of templates."""

    module: str
    describe: Describe = untold


class Searchers:
    """The search children, with the tasks dealt out one after the other: what a task has learned
    stays in its child."""

    def __init__(
        self,
        request: OpenModels,
        workloads: Sequence[str],
        workers: int,
        directory: Path,
        program: SearchProgram,
    ) -> None:
        count = searchers_for(workers, usable_cores())
        self._describe = program.describe
        memory = memory_limit(request.target.kind, children=count)
        logs = [directory / f"searcher-{number}.log" for number in range(count)]
        self.children = tuple(
            SearchChild(_apart(request, number), log, program.module, memory)
            for number, log in enumerate(logs)
        )
        self._of = {
            workload: self.children[number % count] for number, workload in enumerate(workloads)
        }

    @property
    def are_idle(self) -> bool:
        return all(child.is_idle for child in self.children)

    @property
    def target_json(self) -> str:
        """Empty before the models are open."""
        return next((child.target_json for child in self.children if child.target_json), "")

    def is_idle(self, workload: str) -> bool:
        """Returns whether this task can be searched now."""
        return self._of[workload].is_idle

    def knows(self, workload: str) -> bool:
        """Returns whether its child has this task's schedules and results already."""
        return self._of[workload].knows(workload)

    def asked_for(self, workload: str) -> int:
        """The number of candidates that this task's child is asked for and has not proposed."""
        return self._of[workload].asked_for(workload)

    def propose(self, request: Propose) -> None:
        self._of[request.workload].propose(request)

    def receive(self) -> list[Proposed]:
        """Returns the proposals that have arrived. Raises ModelError, EnvironmentUnfitError."""
        received = [proposed for child in self.children for proposed in child.receive()]
        for proposed in received:
            self._describe(proposed.workload, proposed.sketches)
        return received

    def close(self) -> None:
        for child in self.children:
            child.close()


def _apart(request: OpenModels, number: int) -> OpenModels:
    """The request with a folder of its own: each child prepares the models, and would read
    what another has half written."""
    own = Path(request.directory) / f"searcher-{number}"
    own.mkdir(parents=True, exist_ok=True)
    return msgspec.structs.replace(request, directory=str(own))


def searchers_for(workers: int, cores: int) -> int:
    """Returns the number of search children for so many workers, on a machine with so many
    cores."""
    return max(1, min(cores, -(-workers // _WORKERS_OF_ONE)))
