"""Chooses the persistent kernel of a model: its context, and the way of each of its kernels.

In each context each kernel is measured alone, once per way, and the fastest are combined; then the
contexts are measured (Zhuang et al., "MonoNN", OSDI 2024). So the cost is the sum over kernels, not
the product. The texts of all contexts are compiled concurrently, which takes most of the time. What
the other side's build has decided is not measured again. Without a device, the first way is taken,
and the context with the most threads that spills no registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tunegate.errors import NotOfferedError, NotOfferedNowError
from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.persistent.compiling_beside import Compile, CompilingBeside
from tunegate_whole_model.persistent.kernel_text import kernel_text
from tunegate_whole_model.persistent.kernel_timer import KernelTimer, TimedText
from tunegate_whole_model.persistent.launching_module import WHOLE_KERNEL
from tunegate_whole_model.persistent.nvrtc import CompiledKernels, KernelFigures
from tunegate_whole_model.persistent.stage_program import (
    StageProgram,
    WholeModel,
    require_sound,
    stage_program,
)
from tunegate_whole_model.persistent.ways import NOTHING_DECIDED, Decided
from tunegate_whole_model.stages.contexts import CONTEXTS, Context, by_threads, fastest
from tunegate_whole_model.stages.residency import MULTIPROCESSORS, KernelNeeds, resident_blocks

_MOST_NESTS = 1000
_MOST_TEXT = 2_000_000
"""The compiler takes minutes for a longer text."""
_PROVED_GRIDS = (1, 8)
"""The steps of a block follow one rule for every number of blocks."""
_ONE_WAY = "only_"
"""The prefix of kernels that are measured alone."""


class ChosenKernel(NamedTuple):
    """`picks` are the ways of its kernels by symbol; `refused` says why the other contexts are
    out."""

    context: Context
    program: NativeProgram
    stages: StageProgram
    text: str
    picks: Mapping[str, str]
    compiled: CompiledKernels
    refused: tuple[str, ...]

    @property
    def figures(self) -> KernelFigures:
        return self.compiled.figures[WHOLE_KERNEL]

    @property
    def timed_text(self) -> TimedText:
        return TimedText(self.text, self.compiled, self.stages.arena_bytes, self.context)


class _ContextText(NamedTuple):
    """The text for one context, with the fastest ways, before it is compiled."""

    context: Context
    program: NativeProgram
    stages: StageProgram
    text: str
    picks: Mapping[str, str]


class _Refusal(NamedTuple):
    """The reason why a context is out."""

    context: Context
    error: NotOfferedError


def chosen_kernel(
    model_at: Callable[[int], WholeModel],
    arch: str,
    compiled: Compile,
    timer: KernelTimer | None,
    decided: Decided = NOTHING_DECIDED,
) -> ChosenKernel:
    """Returns the kernel. `model_at` returns the model for blocks of so many threads. Raises
    NotOfferedError with the reasons if no context can hold it, NotOfferedNowError if one of them
    was not timed."""
    if arch not in MULTIPROCESSORS:
        raise NotOfferedError(f"what {arch} holds at once is not known")
    refused: list[_Refusal] = []
    contexts = _contexts(timer, decided)
    with CompilingBeside(compiled) as beside:

        def decided_at(threads: int) -> WholeModel:
            return decided.of(model_at(threads))

        written = _write_all(decided_at, contexts, beside, timer, refused)
        known = list(_fitting(written, arch, beside, timer, refused))
    if not known and decided.marks:
        return chosen_kernel(model_at, arch, compiled, timer)
    if not known:
        has_died = any(isinstance(each.error, NotOfferedNowError) for each in refused)
        kind = NotOfferedNowError if has_died else NotOfferedError
        raise kind("; ".join(_reasons(refused)))
    best = min(known, key=lambda each: _cost(each, timer)) if len(contexts) > 1 else known[0]
    return best._replace(refused=_reasons(refused))


def _contexts(timer: KernelTimer | None, decided: Decided) -> Sequence[Context]:
    if (context := decided.context()) is not None:
        return (context,)
    return CONTEXTS if timer is not None else by_threads()


def _write_all(
    model_at: Callable[[int], WholeModel],
    contexts: Sequence[Context],
    compiling: CompilingBeside,
    timer: KernelTimer | None,
    refused: list[_Refusal],
) -> list[_ContextText]:
    """Returns the text of each context. Texts to measure are compiled concurrently, and measured
    one after another."""
    models: dict[Context, WholeModel] = {}
    for context in contexts:
        try:
            models[context] = model_at(context.threads)
            if timer is not None and _has_choice(models[context]):
                compiling.begin(_text_of_ways(models[context], context))
        except NotOfferedError as error:
            models.pop(context, None)
            refused.append(_Refusal(context, error))
    written = []
    for context, model in models.items():
        try:
            written.append(_write_text(model, context, compiling, timer))
        except NotOfferedError as error:
            refused.append(_Refusal(context, error))
            continue
        if timer is not None:
            compiling.begin(written[-1].text)
    return written


def _fitting(
    texts: Sequence[_ContextText],
    arch: str,
    compiling: CompilingBeside,
    timer: KernelTimer | None,
    refused: list[_Refusal],
) -> Iterator[ChosenKernel]:
    """Yields those that fit on the device; without one, none after the first that spills
    nothing."""
    for each in texts:
        try:
            code = compiling(each.text)
            made = ChosenKernel(*each, code, ())
            _require_room(made, arch)
        except NotOfferedError as error:
            refused.append(_Refusal(each.context, error))
            continue
        yield made
        if timer is None and not made.figures.spilled_bytes:
            return


def _reasons(refused: Sequence[_Refusal]) -> tuple[str, ...]:
    """Returns each reason once, with the contexts it applies to."""
    contexts: dict[str, list[str]] = {}
    for context, error in refused:
        contexts.setdefault(str(error), []).append(str(context))
    return tuple(
        reason if len(of) == len(CONTEXTS) else f"{', '.join(of)}: {reason}"
        for reason, of in contexts.items()
    )


def _cost(kernel: ChosenKernel, timer: KernelTimer | None) -> float:
    if timer is None:
        return kernel.figures.spilled_bytes
    return timer.milliseconds(kernel.program, kernel.timed_text).get(WHOLE_KERNEL, float("inf"))


def _write_text(
    model: WholeModel, context: Context, compiled: Compile, timer: KernelTimer | None
) -> _ContextText:
    offered = {symbol: tuple(ways) for symbol, ways in model.ways.items()}
    times = _times(model, context, compiled, timer) if timer and _has_choice(model) else {}
    picks = fastest(offered, times)
    stages = _stages(model, picks, context)
    require_sound(stages, _PROVED_GRIDS)
    text = _text(model, {WHOLE_KERNEL: stages}, context)
    return _ContextText(context, model.program, stages, text, picks)


def _has_choice(model: WholeModel) -> bool:
    return any(len(ways) > 1 for ways in model.ways.values())


def _require_room(kernel: ChosenKernel, arch: str) -> None:
    figures, wanted = kernel.figures, kernel.context.blocks_each
    needs = KernelNeeds(kernel.context.threads, figures.registers, figures.shared_bytes)
    room = resident_blocks(needs, MULTIPROCESSORS[arch])
    if room < wanted:
        raise NotOfferedError(
            f"a multiprocessor holds {room} blocks ({figures.registers} registers, "
            f"{figures.shared_bytes} bytes of shared memory)"
        )


def _times(
    model: WholeModel, context: Context, compiled: Compile, timer: KernelTimer
) -> dict[str, dict[str, float]]:
    """Returns the milliseconds of kernels with a choice, by symbol and way; each way is a kernel of
    one text."""
    entries = dict(_entries(model, context))
    arena_bytes = max((each.arena_bytes for each in entries.values()), default=1)
    text = _text_of_ways(model, context)
    kernels = TimedText(text, compiled(text), arena_bytes, context)
    keys = [*entries]
    found: dict[str, dict[str, float]] = {}
    for name, milliseconds in timer.milliseconds(model.program, kernels).items():
        symbol, source = keys[int(name.removeprefix(_ONE_WAY))]
        found.setdefault(symbol, {})[source] = milliseconds
    return found


def _text_of_ways(model: WholeModel, context: Context) -> str:
    entries = dict(_entries(model, context))
    named = {f"{_ONE_WAY}{n}": each for n, each in enumerate(entries.values())}
    return _text(model, named, context)


def _entries(model: WholeModel, context: Context) -> Iterator[tuple[tuple[str, str], StageProgram]]:
    """Yields the nests of each kernel with a choice, in each way."""
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
    """Yields each kernel, the position of the first nest of its first call, and their number."""
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
