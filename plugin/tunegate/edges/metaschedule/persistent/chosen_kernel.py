"""The persistent kernel of a model: in which context, and each of its kernels in which way.

In each context each kernel is measured by itself, once for each way, and the fastest are put
together; then the contexts are measured (Zhuang et al., "MonoNN", OSDI 2024). So the cost is the
sum over kernels, not the product. Where there is no device to measure on, the first way and the
context with the most threads that needs no memory for registers are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tunegate.edges.metaschedule.persistent.kernel_text import kernel_text
from tunegate.edges.metaschedule.persistent.kernel_timer import KernelTimer, TimedText
from tunegate.edges.metaschedule.persistent.launching_module import WHOLE_KERNEL
from tunegate.edges.metaschedule.persistent.stage_program import (
    StageProgram,
    WholeModel,
    require_sound,
    stage_program,
)
from tunegate.edges.native.program import NativeProgram
from tunegate.edges.nvidia.nvrtc import CompiledKernels, KernelFigures
from tunegate.errors import NotOfferedError
from tunegate.whole_model.contexts import CONTEXTS, Context, by_threads, fastest
from tunegate.whole_model.residency import MULTIPROCESSORS, KernelNeeds, resident_blocks

_MOST_NESTS = 1000
_MOST_TEXT = 2_000_000
"""The compiler takes minutes beyond these."""
_PROVED_GRIDS = (1, 8)
"""The steps of a block follow one rule for every number of blocks."""


class ChosenKernel(NamedTuple):
    """`refused` says why the other contexts are none."""

    context: Context
    program: NativeProgram
    stages: StageProgram
    text: str
    compiled: CompiledKernels
    refused: tuple[str, ...]

    @property
    def figures(self) -> KernelFigures:
        return self.compiled.figures[WHOLE_KERNEL]

    @property
    def timed(self) -> TimedText:
        return TimedText(self.text, self.compiled, self.stages.arena_bytes, self.context)


def chosen_kernel(
    model_at: Callable[[int], WholeModel],
    arch: str,
    compiled: Callable[[str], CompiledKernels],
    timer: KernelTimer | None,
) -> ChosenKernel:
    """`model_at` gives the model for blocks of so many threads. Raises NotOfferedError with the
    reasons where no context can hold it."""
    if arch not in MULTIPROCESSORS:
        raise NotOfferedError(f"what {arch} holds at once is not known")
    known: list[ChosenKernel] = []
    refused: list[tuple[Context, str]] = []
    for context in CONTEXTS if timer is not None else by_threads():
        try:
            model = model_at(context.threads)
            made = _assembled(model, context, compiled, timer)
            _require_room(made, arch)
        except NotOfferedError as error:
            refused.append((context, str(error)))
            continue
        known.append(made)
        if timer is None and not made.figures.spilled_bytes:
            break
    if not known:
        raise NotOfferedError("; ".join(_reasons(refused)))
    best = min(known, key=lambda each: _cost(each, timer))
    return best._replace(refused=_reasons(refused))


def _reasons(refused: Sequence[tuple[Context, str]]) -> tuple[str, ...]:
    """Each reason once, with the contexts that it holds for."""
    contexts: dict[str, list[str]] = {}
    for context, reason in refused:
        contexts.setdefault(reason, []).append(str(context))
    return tuple(
        reason if len(of) == len(CONTEXTS) else f"{', '.join(of)}: {reason}"
        for reason, of in contexts.items()
    )


def _cost(made: ChosenKernel, timer: KernelTimer | None) -> float:
    if timer is None:
        return made.figures.spilled_bytes
    return timer.milliseconds(made.program, made.timed).get(WHOLE_KERNEL, float("inf"))


def _assembled(
    model: WholeModel,
    context: Context,
    compiled: Callable[[str], CompiledKernels],
    timer: KernelTimer | None,
) -> ChosenKernel:
    offered = {symbol: tuple(ways) for symbol, ways in model.ways.items()}
    times = _times(model, context, compiled, timer) if timer is not None else {}
    picks = fastest(offered, times)
    stages = _stages(model, picks, context)
    require_sound(stages, _PROVED_GRIDS)
    text = _text(model, {WHOLE_KERNEL: stages}, context)
    return ChosenKernel(context, model.program, stages, text, compiled(text), ())


def _require_room(made: ChosenKernel, arch: str) -> None:
    figures, wanted = made.figures, made.context.blocks_each
    needs = KernelNeeds(made.context.threads, figures.registers, figures.shared_bytes)
    room = resident_blocks(needs, MULTIPROCESSORS[arch])
    if room < wanted:
        raise NotOfferedError(
            f"a multiprocessor holds {room} blocks ({figures.registers} registers, "
            f"{figures.shared_bytes} bytes of shared memory)"
        )


def _times(
    model: WholeModel,
    context: Context,
    compiled: Callable[[str], CompiledKernels],
    timer: KernelTimer,
) -> dict[str, dict[str, float]]:
    """Milliseconds of kernels with a choice, by symbol and way: each way of each is a kernel of
    one text."""
    entries = dict(_entries(model, context))
    names = {f"only_{n}": key for n, key in enumerate(entries)}
    text = _text(model, {name: entries[key] for name, key in names.items()}, context)
    arena_bytes = max((each.arena_bytes for each in entries.values()), default=1)
    kernels = TimedText(text, compiled(text), arena_bytes, context)
    found: dict[str, dict[str, float]] = {}
    for name, milliseconds in timer.milliseconds(model.program, kernels).items():
        symbol, source = names[name]
        found.setdefault(symbol, {})[source] = milliseconds
    return found


def _entries(model: WholeModel, context: Context) -> Iterator[tuple[tuple[str, str], StageProgram]]:
    """The nests of each kernel with a choice, in each way."""
    for source in dict.fromkeys(chain.from_iterable(model.ways.values())):
        picks = {
            symbol: source if source in ways else next(iter(ways))
            for symbol, ways in model.ways.items()
        }
        stages = _stages(model, picks, context)
        for symbol, (first, count) in _places(model, picks):
            ways = model.ways[symbol]
            if source in ways and len(ways) > 1:
                yield (symbol, source), stages.only(first, count)


def _stages(model: WholeModel, picks: Mapping[str, str], context: Context) -> StageProgram:
    ways = {symbol: model.ways[symbol][source] for symbol, source in picks.items()}
    found = stage_program(model.program, ways, context.threads)
    if len(found.nests) > _MOST_NESTS:
        raise NotOfferedError(f"it has {len(found.nests)} loop nests, more than {_MOST_NESTS}")
    return found


def _places(model: WholeModel, picks: Mapping[str, str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields each kernel, the place of the first nest of its first call, and how many there are."""
    at = 0
    seen = set[str]()
    for call in model.program.calls:
        count = len(model.ways[call.symbol][picks[call.symbol]].codes)
        if call.symbol not in seen:
            seen.add(call.symbol)
            yield call.symbol, (at, count)
        at += count


def _text(model: WholeModel, entries: Mapping[str, StageProgram], context: Context) -> str:
    counts = len(model.program.inputs), len(model.program.outputs)
    found = kernel_text(model.head, entries, *counts, context)
    if len(found) > _MOST_TEXT:
        raise NotOfferedError(f"its kernel has {len(found) / 1e6:.1f} MB of text, and 2 at most")
    return found
