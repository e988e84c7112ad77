"""The searcher as the run sees it: restarted when it dies, given up on for
a task that kills it twice."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import cast

import msgspec

from tunegate.edges.processes.child import Child, ChildDiedError
from tunegate.edges.processes.memory_limit import MemoryLimit
from tunegate.engine.protocol import (
    Failed,
    Opened,
    OpenModels,
    Propose,
    Proposed,
    SearchReply,
)
from tunegate.errors import EnvironmentUnfitError, ModelError

_LIMIT_SECONDS = 60.0
_OPENING_SECONDS = 300.0  # imports TVM and lowers every model: a busy machine takes over a minute
_RESTARTS = 3
_NUMBERS_OF_ONE = 1_000_000


class SearchChild:
    """Opens the models at once; until they are open it is busy. `target_json` is known after.
    `program` is the module that it runs."""

    def __init__(self, request: OpenModels, log: Path, program: str, memory: MemoryLimit) -> None:
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
        """Returns whether this very process has been asked for the task."""
        return workload in self._introduced

    def asked_for(self, workload: str) -> int:
        """The number of candidates of this task that it is asked for and has not proposed."""
        asked = self._asked
        return asked.count if asked is not None and asked.workload == workload else 0

    def fileno(self) -> int:
        return self._child.fileno()

    def propose(self, request: Propose) -> None:
        """Only when it is idle."""
        self._asked = request
        self._introduced.add(request.workload)
        with contextlib.suppress(ChildDiedError):  # the next `receive` says so
            self._child.send(request)

    def receive(self) -> list[Proposed]:
        """The answer if it has come. Raises ModelError, EnvironmentUnfitError."""
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
            self._program,
            kind,
            variables={"OMP_NUM_THREADS": "1"},
            memory=self._memory,
            log=self._log,
        )
        # What the last child was asked for may still be out, under its numbers.
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
        killed the old one. The task that two of them die of, or that one hangs with, is given
        up."""
        self._child.kill()
        self._restarts += 1
        # What has never started and was not killed from outside would not start again either.
        can_start = bool(self.target_json) or by_signal
        if not can_start or self._restarts > _RESTARTS:
            raise EnvironmentUnfitError(self._end_of_log(how))
        self._is_open, self._child = False, self._start()
        self._introduced.clear()
        asked, self._asked = self._asked, None
        if asked is None:
            return []
        is_given_up = is_hanging or asked.workload in self._suspects
        self._suspects.add(asked.workload)
        return [Proposed(asked.workload, (), exhausted=is_given_up)]

    def _end_of_log(self, how: str) -> str:
        """Returns the message for a child that cannot be had, with its last line."""
        last = " ".join(self._log.read_text(errors="replace").strip().splitlines()[-1:])
        cause = f" ({last[:300]})" if last else ""
        return f"the search process {how}{cause}. Run tunegate doctor; its log is {self._log}."
