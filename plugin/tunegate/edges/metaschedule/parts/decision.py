"""Which parts stay compiled, decided once for all models of a run that have the same kernels: else
two sides that differ in nothing but weights could be cut differently, by noise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.engine.protocol import BuiltFunction


class PartsDecision(msgspec.Struct, frozen=True):
    """The file of one decision."""

    file: Path

    @classmethod
    def of(
        cls, directory: Path, parts: Sequence[Sequence[BuiltFunction]], threads: int
    ) -> PartsDecision:
        """Returns the decision for compiled parts with these kernels and their schedules."""
        kernels = [[(f.key.workload, f.rid, f.weight) for f in part] for part in parts]
        text = msgspec.json.encode([kernels, threads])
        return cls(directory / f"{hashlib.sha256(text).hexdigest()}.json")

    def read(self) -> tuple[int, ...] | None:
        """Returns the places of the parts that stay; None where nothing was decided."""
        if not self.file.exists():
            return None
        return msgspec.json.decode(self.file.read_bytes(), type=tuple[int, ...])

    def write(self, places: Sequence[int]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(msgspec.json.encode(list(places)))
