"""What times decide, once for all models of a run that have the same kernels: else two sides that
differ in nothing but weights could be cut differently, by noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.compiler.build.functions import ModelFunction
from tunegate_cache.format.records import TuningRecord

Records = Mapping[str, tuple[TuningRecord, ...]]
_Decided = TypeVar("_Decided")


class PartsDecision(msgspec.Struct, frozen=True):
    """The file of one decision."""

    file: Path

    @classmethod
    def of_parts(
        cls, directory: Path, functions: Sequence[ModelFunction], records: Records, threads: int
    ) -> PartsDecision:
        """Returns which nodes stay compiled, by their places, in a model with these kernels, which
        have these records."""
        kernels = [(f.workload.digest, f.weight) for f in functions]
        schedules = [
            [(each.template, each.decisions) for each in records.get(digest, ())]
            for digest, _ in kernels
        ]
        return cls(_file(directory, kernels, schedules, threads))

    @classmethod
    def of_whole(
        cls, directory: Path, tasks: Sequence[Mapping[str, Any]], threads: int
    ) -> PartsDecision:
        """Returns whether the build with these kernels, as its artifact names them, is slower than
        ONNX Runtime."""
        kernels = [(task["key"], task["rid"], task["weight"]) for task in tasks]
        return cls(_file(directory, kernels, threads))

    def read(self, kind: type[_Decided]) -> _Decided | None:
        """Returns None where nothing was decided."""
        if not self.file.exists():
            return None
        return msgspec.json.decode(self.file.read_bytes(), type=kind)

    def write(self, decided: object) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(msgspec.json.encode(decided))


def _file(directory: Path, *decided_by: object) -> Path:
    return directory / f"{digest_of_document(decided_by)}.json"
