"""The search of a tuning run: as many children as the workers need, each with its own tasks."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, cast

import msgspec

from tunegate.errors import EnvironmentUnfitError, ModelError
from tunegate.system.machine.cores import usable_cores
from tunegate.system.processes.child import Child, ChildDiedError
from tunegate.system.processes.memory_limit import MemoryLimit, memory_limit
from tunegate.tune.expected_time import TargetKind
from tunegate.tune.prior import Sketch
from tunegate.tune.protocol import Failed, Opened, OpenModels, Propose, Proposed, SearchReply

_WORKERS_OF_ONE = {"llvm": 24, "cuda": 4}
"""The workers that one child begins to search for. For a CPU a candidate is found in 0.03 s and
takes a worker a second or more; for a GPU it was found in 0.39 s and took 1.6 s (H200, 16 cores).
What a run measures itself adds to them."""


Describe = Callable[[str, Mapping[str, Sketch]], None]
"""Receives the templates of a workload each time that candidates are proposed for it."""


def ignore(workload: str, sketches: Mapping[str, Sketch]) -> None:
    """Ignores its arguments: the callback if templates are not needed."""


class SearchProgram(NamedTuple):
    """The module that a child runs with these variables, and the receiver of its templates."""

    module: str
    describe: Describe = ignore
    variables: Mapping[str, str] = MappingProxyType({})


class Searchers:
    """The search children. Tasks are dealt out in turn, and what a task has learned stays in its
    child. More children may join, and take over tasks once they have opened the models."""

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
        return SearchChild(_apart(self._request, number), log, self._program, memory)

    @property
    def children(self) -> tuple[SearchChild, ...]:
        return (*self._serving, *self._joining)

    @property
    def are_idle(self) -> bool:
        """True if no child searches. One that is still starting finds nothing by itself."""
        return all(child.is_idle for child in self._serving)

    def grow(self, count: int) -> None:
        """Starts children up to `count`, at most one for each task."""
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
        """Returns whether its child already has this task's schedules and results."""
        return self._of[workload].knows(workload)

    def requested_count(self, workload: str) -> int:
        """Returns the number of candidates requested of this task's child and not proposed yet."""
        return self._of[workload].requested_count(workload)

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
        """Gives tasks to children that have opened the models. The run goes on without one that
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
        """Gives a child its share of the tasks, each from the child with most, except tasks being
        searched. It gets the run's results of a task with its first request."""
        for _ in range(len(self._of) // len(self._serving)):
            tasks = Counter(map(id, self._of.values()))
            free = [
                w for w, of in self._of.items() if of is not child and not of.requested_count(w)
            ]
            if not free:
                return
            self._of[max(free, key=lambda w: tasks[id(self._of[w])])] = child

    def close(self) -> None:
        for child in self.children:
            child.close()


def _apart(request: OpenModels, number: int) -> OpenModels:
    """Returns the request with its own directory: each child prepares the models, and must not read
    a file that another is still writing."""
    own = Path(request.directory) / f"searcher-{number}"
    own.mkdir(parents=True, exist_ok=True)
    return msgspec.structs.replace(request, directory=str(own))


def searchers_for(workers: int, cores: int, kind: TargetKind, tasks: int) -> int:
    """Returns the number of children that start to search `tasks` tasks for `workers` workers on
    `cores` cores."""
    return max(1, min(cores, tasks, -(-workers // _WORKERS_OF_ONE[kind])))


# One searcher as the run sees it: restarted if it dies; a task that kills it twice is given up.

_LIMIT_SECONDS = 60.0
_OPENING_SECONDS = 300.0  # imports TVM and lowers every model: a busy machine takes over a minute
_RESTARTS = 3
_NUMBERS_OF_ONE = 1_000_000


class SearchChild:
    """Opens the models at once and is busy until they are open. `target_json` is set then.
    `program` is what it runs."""

    def __init__(
        self, request: OpenModels, log: Path, program: SearchProgram, memory: MemoryLimit
    ) -> None:
        self._request, self._log, self._program = request, log, program
        self._memory = memory
        self._restarts = 0
        self._asked: Propose | None = None
        self._suspects: set[str] = set()
        self._introduced: set[str] = set()
        self.target_json = ""
        self._is_open = False
        self._child = self._start()

    @property
    def is_idle(self) -> bool:
        return self._is_open and self._asked is None

    @property
    def pid(self) -> int:
        return self._child.pid

    def knows(self, workload: str) -> bool:
        """Returns whether this process has been asked for the task."""
        return workload in self._introduced

    def requested_count(self, workload: str) -> int:
        """Returns the number of candidates of this task requested and not proposed yet."""
        request = self._asked
        if request is None or request.workload != workload:
            return 0
        return request.count or len(request.seeds)

    def fileno(self) -> int:
        return self._child.fileno()

    def propose(self, request: Propose) -> None:
        """Requests candidates. The child must be idle."""
        self._asked = request
        self._introduced.add(request.workload)
        with contextlib.suppress(ChildDiedError):  # the next `receive` says so
            self._child.send(request)

    def receive(self) -> list[Proposed]:
        """Returns the answer if it has come. Raises ModelError, EnvironmentUnfitError."""
        try:
            reply = self._child.receive()
        except ChildDiedError as error:
            return self._restart(str(error), by_signal=error.by_signal)
        match reply:
            case None if self._is_late():
                return self._restart(f"gave no answer in {self._limit:.0f} s", is_hanging=True)
            case None:
                return []
            case Opened(target_json=target_json):
                self.target_json, self._is_open = target_json, True
                return []
            case Proposed():
                self._asked = None
                return [reply]
            case Failed(reason=reason, model=model):
                raise ModelError(reason) if model else EnvironmentUnfitError(reason)

    def close(self) -> None:
        self._child.kill()

    def _start(self) -> Child[SearchReply]:
        kind = cast("type[SearchReply]", SearchReply)
        child = Child(
            self._program.module,
            kind,
            variables={"OMP_NUM_THREADS": "1", **self._program.variables},
            memory=self._memory,
            log=self._log,
        )
        # Candidates that the last child was asked for may still be out, under its numbers.
        generation = msgspec.structs.replace(
            self._request,
            seed=self._request.seed + self._restarts,
            first_number=1 + self._restarts * _NUMBERS_OF_ONE,
        )
        child.send(generation)
        return child

    @property
    def _limit(self) -> float:
        return _LIMIT_SECONDS if self._is_open else _OPENING_SECONDS

    def _is_late(self) -> bool:
        since = self._child.busy_since
        return since is not None and time.monotonic() - since > self._limit

    def _restart(
        self, how: str, *, by_signal: bool = False, is_hanging: bool = False
    ) -> list[Proposed]:
        """Starts a new child, which may be asked the same once more: something outside may have
        killed the old one. A task that kills two children, or hangs one, is given up."""
        self._child.kill()
        self._restarts += 1
        # A child that never started and was not killed from outside would not start again either.
        can_start = bool(self.target_json) or by_signal
        if not can_start or self._restarts > _RESTARTS:
            raise EnvironmentUnfitError(self._end_of_log(how))
        self._is_open, self._child = False, self._start()
        self._introduced.clear()
        request, self._asked = self._asked, None
        if request is None:
            return []
        is_given_up = is_hanging or request.workload in self._suspects
        self._suspects.add(request.workload)
        return [Proposed(request.workload, (), exhausted=is_given_up)]

    def _end_of_log(self, how: str) -> str:
        """Returns the message for a child that does not start, with the last line of its log."""
        last = " ".join(self._log.read_text(errors="replace").strip().splitlines()[-1:])
        cause = f" ({last[:300]})" if last else ""
        return f"the search process {how}{cause}. Run tunegate doctor; its log is {self._log}."
