"""Implements ports.Builder with the compiler of the runtime that tunes."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.builds import Build
from tunegate.artifacts.candidates import RuntimeName
from tunegate.ports import Builder, BuildJob
from tunegate.runtimes.runtime import OpenCompiler


class PartsBuilder:
    """Artifacts are for the runtime of this name."""

    def __init__(self, runtime: RuntimeName, compiler: OpenCompiler) -> None:
        self._runtime, self._compiler = runtime, compiler

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        return self._compiler.build_in_parts(jobs, self._runtime)


_: type[Builder] = PartsBuilder
