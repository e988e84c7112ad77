"""Turns the text of CUDA kernels into C++ for a CPU, and tells what the assembler would say."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.cuda_stand_in.inline_ptx import without_ptx

MAX_STATIC_SHARED = 48 * 1024
_THREADS = 1024
_REGISTERS_OF_A_BLOCK = 65536
_REGISTERS_OF_A_THREAD = 255
_FEW_REGISTERS = 32
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s*(?:__launch_bounds__\s*\(([^)]*)\)\s*)?(\w+)\s*'
    r"\(([^)]*)\)\s*\{"
)
_DEVICE_FUNCTION = re.compile(r"__device__[^;{}()]*?\b(\w+)\s*\([^;{}]*?\)\s*\{")
_SHARED = re.compile(
    r"(extern\s+)?__shared__\s+(?:(?:alignas|__align__)\s*\(\d+\)\s*)?"
    r"(?:(?:alignas|__align__)\s*\(\d+\)\s*)?([\w:<>, ]+?)\s+(\w+)\s*((?:\[[^\]]*\])*)\s*;"
)
_WAITS = re.compile(
    r"__sync|__shfl|__barrier_sync|__activemask|__ballot|__any_sync|__all_sync|wmma|stand_in_ptx_"
)
_LOCAL_ARRAY = re.compile(
    r"^\s*(?:alignas\(\d+\)\s*)?(\w+)\s+\w+\[(\d+)\](?:\[(\d+)\])?\s*;", re.MULTILINE
)
_VECTOR_ACCESS = re.compile(r"\*\((\w+[1-4])\s*\*\)\(")
_BRACE = re.compile(r"[{}]")
_STEP = re.compile(r"[-+*/%\[(]")
_NEAR = 40
_BEFORE_A_BLOCK = re.compile(r"(?:[){};]|\belse|\bdo)\s*$")
_WORDS = {
    "double": 2.0,
    "int64_t": 2.0,
    "half": 0.5,
    "nv_bfloat16": 0.5,
    "short": 0.5,
    "char": 0.25,
}
_VECTOR = re.compile(r"(\w+?)([234]?)$")


class Kernel(NamedTuple):
    """One `__global__` function: its name, its bounds, and the bytes, in C++, of the variables that
    it reaches in shared memory."""

    name: str
    max_threads: int
    registers: int
    spilled_bytes: int
    threads_wait: bool
    shared: Mapping[int, str]


class CpuText(NamedTuple):
    """C++ that the host's compiler takes, with the kernels in it."""

    source: str
    kernels: tuple[Kernel, ...]


class _Function(NamedTuple):
    body: str
    begin: int
    end: int


def for_a_cpu(text: str, arch: int, *, counts_steps: bool = False) -> CpuText:
    """The text in C++, and the table of its kernels behind it. `arch` is a number such as 90. Where
    it counts, each block adds its operators to the steps of the launch as it is entered."""
    text = without_ptx(_COMMENT.sub(" ", text))
    device = {found[1]: _function(text, found) for found in _DEVICE_FUNCTION.finditer(text)}
    entries = [(found, _function(text, found)) for found in _KERNEL.finditer(text)]
    variables = [found for found in _SHARED.finditer(text) if not found[1]]
    kernels = []
    for found, function in entries:
        reached = _reached(function, device)
        registers, spilled = _registers(function.body, found[1])
        kernels.append(
            Kernel(
                name=found[2],
                max_threads=_bound(found[1]),
                registers=registers,
                spilled_bytes=spilled,
                threads_wait=any(_WAITS.search(each.body) for each in reached),
                shared={
                    number: f"sizeof({variable[2]}{variable[4]})"
                    for number, variable in enumerate(variables)
                    if any(each.begin <= variable.start() < each.end for each in reached)
                },
            )
        )
    numbers = {found.start(): number for number, found in enumerate(variables)}
    source = _SHARED.sub(lambda found: _declared(found, numbers), text)
    source = _VECTOR_ACCESS.sub(r"*stand_in_vector<\1>(", source)
    if counts_steps:
        source = _counting(source)
    return CpuText(source + _table(kernels, len(variables), arch), tuple(kernels))


def assembler_log(kernels: Sequence[Kernel], shared: Mapping[str, int], arch: int) -> str:
    """Returns what `ptxas -v` writes, which begins with the last function of the text."""
    return "".join(
        f"ptxas info    : Compiling entry function '{kernel.name}' for 'sm_{arch}'\n"
        f"ptxas info    : Function properties for {kernel.name}\n"
        f"    {kernel.spilled_bytes} bytes stack frame, {kernel.spilled_bytes} bytes spill stores,"
        f" {kernel.spilled_bytes} bytes spill loads\n"
        f"ptxas info    : Used {kernel.registers} registers, used 1 barriers,"
        f" {shared[kernel.name]} bytes smem\n"
        for kernel in reversed(kernels)
    )


def _function(text: str, found: re.Match[str]) -> _Function:
    end = _end(text, found.end() - 1)
    return _Function(text[found.end() : end], found.start(), end)


def _end(text: str, opening: int) -> int:
    depth = 0
    for brace in _BRACE.finditer(text, opening):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _counting(source: str) -> str:
    """The kernels with a line in each of their blocks that counts the operators outside of the
    blocks within it: so a loop counts as often as it runs."""
    pieces, copied = list[str](), 0
    for kernel in _KERNEL.finditer(source):
        begin = at = kernel.end()
        open_blocks, counted = [begin], {begin: 0}
        for brace in _BRACE.finditer(source, begin, _end(source, begin - 1)):
            counted[open_blocks[-1]] += len(_STEP.findall(source, at, brace.start()))
            at = brace.end()
            if brace[0] == "}":
                open_blocks.pop()
                continue
            is_block = _BEFORE_A_BLOCK.search(source[brace.start() - _NEAR : brace.start()])
            open_blocks.append(at if is_block else open_blocks[-1])  # else values of an array
            counted.setdefault(open_blocks[-1], 0)
        for place, steps in sorted(counted.items()):
            declared = " StandInSteps own_steps;" if place == begin else ""
            pieces += [source[copied:place], f"{declared} own_steps.count += {steps};"]
            copied = place
    return "".join([*pieces, source[copied:]])


def _reached(function: _Function, device: Mapping[str, _Function]) -> list[_Function]:
    """The function and all that it calls, directly or not."""
    found, open_ends, seen = [function], [function], set[str]()
    while open_ends:
        body = open_ends.pop().body
        for name in set(re.findall(r"\b(\w+)\s*\(", body)) & device.keys() - seen:
            seen.add(name)
            found.append(device[name])
            open_ends.append(device[name])
    return found


def _bound(bounds: str | None) -> int:
    first = (bounds or "").partition(",")[0].strip()
    return int(first) if first.isdigit() else _THREADS


def _registers(body: str, bounds: str | None) -> tuple[int, int]:
    """Registers of a thread and bytes that do not fit into them, by a rough estimate: arrays of the
    function are kept in registers. The assembler stays below what `__launch_bounds__` leaves."""
    words = 0.0
    for kind, first, second in _LOCAL_ARRAY.findall(body):
        scalar, lanes = _VECTOR.findall(kind)[0]
        words += int(first) * int(second or 1) * int(lanes or 1) * _WORDS.get(scalar, 1.0)
    wanted = _FEW_REGISTERS + math.ceil(words / 8) * 8
    most = _REGISTERS_OF_A_THREAD
    if bounds is not None:
        threads = math.ceil(_bound(bounds) / 32) * 32
        most = min(most, _REGISTERS_OF_A_BLOCK // threads // 8 * 8)
    return min(wanted, most), max(0, wanted - most) * 4


def _declared(found: re.Match[str], numbers: Mapping[int, int]) -> str:
    extern, kind, name, extent = found[1], found[2], found[3], found[4]
    if extern:
        return f"{kind}* {name} = ({kind}*)stand_in_dynamic_shared();"
    place = f"stand_in_shared({numbers[found.start()]})"
    if not extent:
        return f"{kind}& {name} = *({kind}*){place};"
    return f"{kind} (&{name}){extent} = *({kind} (*){extent}){place};"


def _table(kernels: Iterable[Kernel], variables: int, arch: int) -> str:
    lines, entries = ["\n"], []
    for kernel in kernels:
        sizes = ", ".join(kernel.shared.get(number, "0") for number in range(variables)) or "0"
        lines += [
            f"STAND_IN_CALL({kernel.name})",
            f"static const unsigned stand_in_shared_{kernel.name}[] = {{{sizes}}};",
        ]
        entries.append(
            f"STAND_IN_ENTRY({kernel.name}, {int(kernel.threads_wait)}, {kernel.max_threads}, "
            f"{kernel.registers}, {variables}, stand_in_shared_{kernel.name}),"
        )
    return "\n".join(
        [
            *lines,
            'extern "C" {',
            "extern const stand_in::KernelEntry stand_in_kernels[] = {",
            *entries,
            "};",
            f"extern const unsigned stand_in_kernel_count = {len(entries)};",
            f"extern const unsigned stand_in_arch = {arch};",
            "}\n",
        ]
    )
