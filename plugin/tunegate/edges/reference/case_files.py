"""Outputs of a build and of the reference on the same inputs, as files for a program of the user's.

Each case is an archive of NumPy's, and `cases.json` says what is in it. Names of a model are
written there alone: they may hold anything, and an archive's names are paths to whoever unpacks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tunegate.artifacts.input_rules import Files
from tunegate.edges.models.seeded_inputs import RuledTensor
from tunegate.edges.reference.output_values import arrays_in

CASES_FILE = "cases.json"
MAX_CASES_BYTES = 512 * 2**20
"""The most that the files of one build take: what comes later is not kept."""


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """`given` are the files that the user gave, by input."""

    file: str
    given: dict[str, str]


class _Arrays(msgspec.Struct, frozen=True, kw_only=True):
    """`inputs` has the name of each array `input_N`, and `outputs` of each `reference_N`: with its
    place where it is one of several in a sequence."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cases: tuple[_Case, ...]


class CaseFiles:
    """The arrays of a case are `input_N`, `reference_N` and `candidate_N`."""

    def __init__(
        self, directory: Path, inputs: Sequence[RuledTensor], outputs: Sequence[str]
    ) -> None:
        self._directory, self._inputs, self._outputs = directory, inputs, outputs
        directory.mkdir(parents=True, exist_ok=True)
        self._cases: list[_Case] = []
        self._bytes = 0

    def add(
        self, case: int, feed: Mapping[str, Any], got: Sequence[Any], expected: Sequence[Any]
    ) -> None:
        """Keeps a case, listed in `cases.json`, as long as there is room for it."""
        of_inputs = list(_arrays((each.name, feed[each.name]) for each in self._inputs))
        of_outputs = list(self._of_outputs(expected))
        arrays = {
            **{f"input_{n}": array for n, (_, array) in enumerate(of_inputs)},
            **{f"reference_{n}": array for n, (_, array) in enumerate(of_outputs)},
            **{f"candidate_{n}": array for n, (_, array) in enumerate(self._of_outputs(got))},
        }
        self._bytes += sum(array.nbytes for array in arrays.values())
        if self._bytes > MAX_CASES_BYTES:
            return
        name = f"case-{len(self._cases):04}.npz"
        np.savez(self._directory / name, allow_pickle=False, **arrays)
        self._cases.append(_Case(file=name, given=self._given(case)))
        described = _Arrays(
            inputs=tuple(name for name, _ in of_inputs),
            outputs=tuple(name for name, _ in of_outputs),
            cases=tuple(self._cases),
        )
        (self._directory / CASES_FILE).write_bytes(msgspec.json.encode(described))

    def _of_outputs(self, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        return _arrays(zip(self._outputs, values, strict=True))

    def _given(self, case: int) -> dict[str, str]:
        values = {each.name: each.rule.values for each in self._inputs if each.rule is not None}
        return {
            name: drawn.names[case % len(drawn.names)]
            for name, drawn in values.items()
            if isinstance(drawn, Files) and drawn.names
        }


def _arrays(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in values:
        for place, array in arrays_in(value):
            yield f"{name} {place}".rstrip(), _plain(array)


def _plain(array: Any) -> Any:
    """Texts without the objects that only a pickle could hold."""
    found = np.asarray(array)
    return found.astype(str) if found.dtype.kind == "O" else found
