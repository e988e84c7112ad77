"""The search of a tuning run: as many children as the workers need, each with tasks of its own."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.cost_model.experience import Sketch
from tunegate.edges.machine.cores import usable_cores
from tunegate.edges.processes.memory_limit import memory_limit
from tunegate.engine.protocol import OpenModels, Propose, Proposed
from tunegate.engine.search_child import SearchChild
from tunegate.errors import EnvironmentUnfitError, ModelError
from tunegate.tuning.expected_time import TargetKind

_WORKERS_OF_ONE = {"llvm": 24, "cuda": 4}
"""The workers that one child begins to search for. For a CPU a candidate is found in 0.03 s and
takes a worker a second or more; for a GPU it was found in 0.39 s and took 1.6 s (H200, 16 cores).
What a run measures itself adds to them."""


Describe = Callable[[str, Mapping[str, Sketch]], None]
"""Receives the templates of a workload, each time that candidates are proposed for it."""


def untold(workload: str, sketches: Mapping[str, Sketch]) -> None:
    """Ignores its arguments: the callback where templates are not needed."""


class SearchProgram(NamedTuple):
    """The module that a child runs, and the receiver of its templates."""

    module: str
    describe: Describe = untold


class Searchers:
    """The search children, with the tasks dealt out one after the other: what a task has learned
    stays in its child. More children may join, and take tasks over once they have opened the
    models."""

    def __init__(
        self,
        request: OpenModels,
        workloads: Sequence[str],
        workers: int,
        directory: Path,
        program: SearchProgram,
    ) -> None:
        kind = request.target.kind
        count = searchers_for(workers, usable_cores(), kind, len(workloads))
        self._request, self._directory, self._program = request, directory, program
        self._most = max(1, len(workloads))
        self._serving = [self._child(number, count) for number in range(count)]
        self._joining: list[SearchChild] = []
        self._of = {
            workload: self._serving[number % count] for number, workload in enumerate(workloads)
        }

    def _child(self, number: int, count: int) -> SearchChild:
        memory = memory_limit(self._request.target.kind, children=count)
        log = self._directory / f"searcher-{number}.log"
        return SearchChild(_apart(self._request, number), log, self._program.module, memory)

    @property
    def children(self) -> tuple[SearchChild, ...]:
        return (*self._serving, *self._joining)

    @property
    def are_idle(self) -> bool:
        """Returns whether no child searches. One that is still to join finds nothing by itself."""
        return all(child.is_idle for child in self._serving)

    def grow(self, count: int) -> None:
        """Starts children until there are so many, but no more than tasks."""
        for number in range(len(self.children), min(count, self._most)):
            self._joining.append(self._child(number, count))

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
        self._let_join()
        received = [proposed for child in self._serving for proposed in child.receive()]
        for proposed in received:
            self._program.describe(proposed.workload, proposed.sketches)
        return received

    def _let_join(self) -> None:
        """Those that have opened the models take over tasks. The run goes on without one that
        cannot."""
        for child in tuple(self._joining):
            try:
                child.receive()
            except (ModelError, EnvironmentUnfitError):
                self._joining.remove(child)
                self._most = len(self.children)
                with contextlib.suppress(OSError):
                    child.close()
                continue
            if child.is_idle:
                self._joining.remove(child)
                self._serving.append(child)
                self._give_tasks(child)

    def _give_tasks(self, child: SearchChild) -> None:
        """Its share of the tasks, each from who has most, but for those that are searched just now.
        It learns what the run knows of one when it is first asked for that."""
        for _ in range(len(self._of) // len(self._serving)):
            tasks = Counter(map(id, self._of.values()))
            free = [w for w, of in self._of.items() if of is not child and not of.asked_for(w)]
            if not free:
                return
            self._of[max(free, key=lambda w: tasks[id(self._of[w])])] = child

    def close(self) -> None:
        for child in self.children:
            child.close()


def _apart(request: OpenModels, number: int) -> OpenModels:
    """The request with a folder of its own: each child prepares the models, and would read
    what another has half written."""
    own = Path(request.directory) / f"searcher-{number}"
    own.mkdir(parents=True, exist_ok=True)
    return msgspec.structs.replace(request, directory=str(own))


def searchers_for(workers: int, cores: int, kind: TargetKind, tasks: int) -> int:
    """Returns the number of children that begin to search so many tasks for so many workers, on a
    machine with so many cores."""
    return max(1, min(cores, tasks, -(-workers // _WORKERS_OF_ONE[kind])))
