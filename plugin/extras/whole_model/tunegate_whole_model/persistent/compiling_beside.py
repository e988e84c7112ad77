"""Compiles texts concurrently: the compiler takes seconds for each, on one core."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tunegate_whole_model.persistent.nvrtc import CompiledKernels

Compile = Callable[[str], CompiledKernels]


class CompilingBeside:
    """`begin` announces texts; others are compiled on demand. NVRTC compiles in several threads at
    once."""

    def __init__(self, compiled: Compile) -> None:
        self._compiled = compiled
        self._pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self._begun: dict[str, Future[CompiledKernels]] = {}

    def begin(self, text: str) -> None:
        self._begun[text] = self._pool.submit(self._compiled, text)

    def __call__(self, text: str) -> CompiledKernels:
        """Returns the compiled text. Raises what the compiler raises."""
        begun = self._begun.get(text)
        return begun.result() if begun is not None else self._compiled(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
