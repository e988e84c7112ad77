"""Which nodes stay compiled, decided once for all models of a run that have the same kernels: else
two sides that differ in nothing but weights could be cut differently, by noise."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate_cache.format.records import TuningRecord

Records = Mapping[str, tuple[TuningRecord, ...]]


class PartsDecision(msgspec.Struct, frozen=True):
    """The file of one decision."""

    file: Path

    @classmethod
    def of(
        cls, directory: Path, functions: Sequence[ModelFunction], records: Records, threads: int
    ) -> PartsDecision:
        """Returns the decision for a model with these kernels, which have these records."""
        kernels = [(f.workload.digest, f.weight) for f in functions]
        schedules = [
            [(each.template, each.decisions) for each in records.get(digest, ())]
            for digest, _ in kernels
        ]
        text = msgspec.json.encode([kernels, schedules, threads])
        return cls(directory / f"{hashlib.sha256(text).hexdigest()}.json")

    def read(self) -> set[int] | None:
        """Returns the places of the nodes that stay; None where nothing was decided."""
        if not self.file.exists():
            return None
        return msgspec.json.decode(self.file.read_bytes(), type=set[int])

    def write(self, nodes: set[int]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(msgspec.json.encode(sorted(nodes)))
