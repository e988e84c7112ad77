"""A trace's instructions without the names in them, so that traces of other people's modules can be
compared with those of our own. Plain data: nothing here is applied to anything."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from tunegate.artifacts.foreign_schedules import Instruction
from tunegate_cache.format.records import Decision

_END_OF_SKETCH = "EnterPostproc"
_NAMES_A_BLOCK = "GetSBlock"
_PARALLELISM = ["meta_schedule.parallel"]
"""Instructions that the number of cores decides; that of our own template counts."""


class TraceSignature(NamedTuple):
    """`text` is equal for equal sketches; `kept` are the places of its
    instructions in the trace."""

    text: str
    kept: tuple[int, ...]

    def moved(self, decisions: Collection[Decision]) -> tuple[Decision, ...]:
        """Decisions of the trace as decisions of the form; those of dropped instructions go."""
        places = {old: new for new, old in enumerate(self.kept)}
        return tuple(sorted((places[i], values) for i, values in decisions if i in places))


def trace_signature(instructions: Sequence[Instruction], pure: Collection[str]) -> TraceSignature:
    """The sketch part of a trace, without what has no effect (the instructions of
    `pure` kinds whose results nobody uses, as TVM's `Trace.simplified` drops them), its
    blocks numbered by first use."""
    sketch = list(_sketch(instructions))
    kept = _with_effect(sketch, pure)
    variables: dict[str, str] = {}
    blocks: dict[str, int] = {}
    lines = []
    for place in kept:
        kind, inputs, attributes, outputs = sketch[place]
        for name in outputs:
            variables[name] = f"@{len(variables)}"
        if kind == _NAMES_A_BLOCK:
            attributes = [blocks.setdefault(json.dumps(attributes), len(blocks))]
        if attributes == _PARALLELISM:
            inputs = inputs[:1]
        lines.append([kind, _renamed(inputs, variables), _renamed(attributes, {}), len(outputs)])
    return TraceSignature(json.dumps(lines, separators=(",", ":")), tuple(kept))


def _sketch(instructions: Sequence[Instruction]) -> Iterator[Instruction]:
    for instruction in instructions:
        if instruction[0] == _END_OF_SKETCH:
            return
        yield instruction


def _with_effect(sketch: Sequence[Instruction], pure: Collection[str]) -> list[int]:
    used: set[str] = set()
    kept = []
    for place in range(len(sketch) - 1, -1, -1):
        kind, inputs, _, outputs = sketch[place]
        if kind in pure and used.isdisjoint(outputs):
            continue
        used.update(_names(inputs))
        kept.append(place)
    return kept[::-1]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _names(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _names(part)


def _renamed(value: Any, variables: dict[str, str]) -> Any:
    if isinstance(value, str):
        return variables.get(value, value)
    if isinstance(value, bool):
        return int(value)  # TVM writes it as a number
    if isinstance(value, list):
        return [_renamed(part, variables) for part in value]
    if isinstance(value, dict):
        return {name: _renamed(part, variables) for name, part in value.items()}
    return value
