"""The children of a compiler, each with a model open: those that are asked again stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from tunegate.ports import ModelJob
from tunegate.runtimes.tvm.compile_requests import OpenedKey, child_variables, opened_key
from tunegate.system.machine.cores import usable_cores
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import MemoryLimit, Shares, memory_limit, memory_shares
from tunegate.tune.compiler_protocol import Built, Tasks

_KEPT_BYTES = 512 * 1024 * 1024
"""The size of all files whose children stay: an open model takes several times its file."""
_BYTES_OF_ONE = 2**30
"""What such a child may take by itself."""

_Reply = TypeVar("_Reply")


class CompileChildren(Generic[_Reply]):
    """Children that answer with `module`. Each question has the time limit, and what they write
    goes to `log`. `close` ends those that stay."""

    def __init__(self, module: str, replies: type[_Reply], log: Path, limit_seconds: float) -> None:
        self._module, self._replies = module, replies
        self._log, self._limit_seconds = log, limit_seconds
        self._kept: dict[OpenedKey, Child[_Reply]] = {}
        self._kept_bytes = 0

    def close(self) -> None:
        for child in self._kept.values():
            child.kill()
        self._kept.clear()

    def begin(self, job: ModelJob, memory: MemoryLimit) -> Callable[[], Child[_Reply]]:
        """Returns what gives the child that has the model open, or else a new one."""

        def begin() -> Child[_Reply]:
            kept = self._kept.pop(opened_key(job), None)
            if kept is not None:
                self._kept_bytes -= job.file.stat().st_size
            if kept is not None and kept.is_running:
                return kept
            variables = child_variables(job.target)
            return Child(
                self._module, self._replies, variables=variables, memory=memory, log=self._log
            )

        return begin

    def converse(
        self,
        jobs: Sequence[ModelJob],
        talks: Sequence[Conversation[_Reply]],
        shares: Shares,
        stay: Sequence[bool],
    ) -> None:
        """Holds a conversation about each job. Those children that are to stay for the next do, as
        far as there is room."""
        places = {id(t): job for t, job, stays in zip(talks, jobs, stay, strict=True) if stays}
        most_kept = memory_limit().limit_bytes // _BYTES_OF_ONE // 2

        def ended(talk: Conversation[_Reply]) -> None:
            job = places.get(id(talk))
            if job is None:
                talk.dismiss()
            else:
                self._keep(job, talk, most_kept)

        converse(talks, at_once=shares.at_once, limit_seconds=self._limit_seconds, ended=ended)

    def _keep(self, job: ModelJob, talk: Conversation[_Reply], most: int) -> None:
        if talk.child is None or talk.died is not None:
            return
        size = job.file.stat().st_size
        is_room = len(self._kept) < most and self._kept_bytes + size <= _KEPT_BYTES
        if not is_room or not isinstance(talk.replies[0], Tasks | Built):
            talk.dismiss()
            return
        self._kept_bytes += size
        self._kept[opened_key(job)] = talk.child


def memory_for(jobs: Sequence[ModelJob]) -> Shares:
    """Returns how many children may have these models open at once, and what each may take."""
    is_cuda = any(job.target.kind == "cuda" for job in jobs)
    return memory_shares([job.file for job in jobs], usable_cores(), "cuda" if is_cuda else "llvm")
