"""Turns the PTX that TVM writes into a text into calls of what `tensor_cores.h` has for it.

Any other instruction stays, and g++ refuses it by its name.
"""

import re
from typing import NamedTuple

_STATEMENT = re.compile(r"\b(?:__asm__|asm)\s*(?:__volatile__|volatile)?\s*\(")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_MMA = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(?:satfinite\.)?"
    r"(\w+)\.(\w+)\.(\w+)\.(\w+)"
)
_LDMATRIX = re.compile(r"ldmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared\.b16")
_CP_ASYNC = re.compile(
    r"cp\.async\.c[ag]\.shared\.global(?:\.L2::\w+)?\s*\[%0\], \[%1\], (\w+|%\d)"
)
_MAXIMUM = re.compile(r"(max|min)\.NaN\.f32")
_NO_WORK = re.compile(r"cp\.async\.(?:commit_group|wait_group|wait_all)")
_TYPES = {
    "f16": ("half", 16),
    "bf16": ("__nv_bfloat16", 16),
    "tf32": ("stand_in_tf32", 32),
    "f32": ("float", 32),
    "s8": ("int8_t", 8),
    "u8": ("uint8_t", 8),
    "s32": ("int", 32),
}
_LANES = 32


class _Statement(NamedTuple):
    instruction: str
    outputs: list[str]
    inputs: list[str]


def without_ptx(text: str) -> str:
    """The text with calls of functions where it had instructions that these stand for."""
    parts, at = [], 0
    for found in _STATEMENT.finditer(text):
        if found.start() < at:
            continue
        end = _closing(text, found.end() - 1)
        call = _call(_parse(text[found.end() : end]))
        if call is not None:
            parts += [text[at : found.start()], call]
            at = end + 1
    return "".join([*parts, text[at:]])


def _call(statement: _Statement) -> str | None:
    instruction = statement.instruction
    if found := _MMA.search(instruction):
        return _mma(found, statement)
    if found := _LDMATRIX.search(instruction):
        function = f"stand_in_ptx_ldmatrix<{found[1]}, {str(bool(found[2])).lower()}>"
        return _into_words(statement.outputs, f"{function}(stand_in_d, {statement.inputs[0]});")
    if found := _CP_ASYNC.search(instruction):
        size = found[1] if found[1].isdigit() else statement.inputs[int(found[1][1:])]
        to, source = statement.inputs[:2]
        return f"stand_in_ptx_cp_async<{size}>({to}, (const void*)({source}))"
    if found := _MAXIMUM.search(instruction):
        return f"{statement.outputs[0]} = stand_in_{found[1]}_nan({', '.join(statement.inputs)})"
    return "((void)0)" if _NO_WORK.search(instruction) else None


def _mma(found: re.Match[str], statement: _Statement) -> str | None:
    rows, columns, depth = (int(found[n]) for n in (1, 2, 3))
    kinds = [_TYPES.get(found[n]) for n in (4, 5, 6, 7)]
    if columns != 8 or None in kinds:
        return None
    names = [kind[0] for kind in kinds if kind]
    bits = [kind[1] for kind in kinds if kind]
    a, b = rows * depth * bits[1] // 32 // _LANES, depth * columns * bits[2] // 32 // _LANES
    inputs = [f"stand_in_word({each})" for each in statement.inputs]
    words = (inputs[:a], inputs[a : a + b], inputs[a + b :])
    held = " ".join(
        f"unsigned stand_in_{name}[] = {{{', '.join(each)}}};"
        for name, each in zip("abc", words, strict=True)
    )
    call = f"stand_in_ptx_mma<{rows}, {depth}, {', '.join(names)}>"
    return _into_words(
        statement.outputs, f"{held} {call}(stand_in_d, stand_in_a, stand_in_b, stand_in_c);"
    )


def _into_words(outputs: list[str], work: str) -> str:
    sets = " ".join(f"stand_in_set({to}, stand_in_d[{n}]);" for n, to in enumerate(outputs))
    return f"do {{ unsigned stand_in_d[{len(outputs)}]; {work} {sets} }} while (0)"


def _parse(inside: str) -> _Statement:
    """The parts between the colons; each operand is a constraint and an expression in brackets."""
    sections = [section.strip() for section in _split(inside, ":")]
    operands = [
        [
            each[each.index("(") + 1 : each.rindex(")")]
            for each in _split(section, ",")
            if "(" in each
        ]
        for section in (*sections[1:], "", "")
    ]
    return _Statement("".join(_STRING.findall(sections[0])), operands[0], operands[1])


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no brackets and no string."""
    parts, depth, is_quoted, begin = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"' and text[at - 1] != "\\":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _closing(text: str, opening: int) -> int:
    """Returns the index of the bracket that closes the one at `opening`."""
    depth, is_quoted = 0, False
    for at in range(opening, len(text)):
        letter = text[at]
        if letter == '"' and text[at - 1] != "\\":
            is_quoted = not is_quoted
        elif not is_quoted and letter in "()":
            depth += 1 if letter == "(" else -1
            if depth == 0:
                return at
    return len(text)
