"""The context and the ways are chosen by measurement, and without a device by the compiler's
figures. The device stands behind its port: times are scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tunegate.errors import NotOfferedError, NotOfferedNowError
from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.persistent import chosen_kernel as chosen_kernel_module
from tunegate_whole_model.persistent.chosen_kernel import (
    ChosenKernel,
    chosen_kernel,
)
from tunegate_whole_model.persistent.kernel_timer import TimedText
from tunegate_whole_model.persistent.launching_module import WHOLE_KERNEL
from tunegate_whole_model.persistent.nvrtc import CompiledKernels, KernelFigures
from tunegate_whole_model.persistent.ways import NOTHING_DECIDED, Decided, mark_of_context
from tunegate_whole_model.stages.contexts import CONTEXTS, Context, WayTimes
from whole_model_tests.models import whole

Compiled = Callable[[str], CompiledKernels]


def compiling(registers: int, shared_bytes: int = 0, spilled_bytes: int = 0) -> Compiled:
    """A compiler that says the same of each kernel of a text."""
    figures = KernelFigures(registers, shared_bytes, spilled_bytes)

    def compiled(text: str) -> CompiledKernels:
        lines = (line for line in text.splitlines() if line.endswith("{"))
        starts = (line.partition("(")[0] for line in lines if "(char* input_0" in line)
        return CompiledKernels(b"", dict.fromkeys(starts, figures))

    return compiled


class ScriptedTimer:
    """`best` is the fastest context. Of the ways of a kernel the one is faster that has more
    text."""

    def __init__(self, best: Context, *, prefers_first: bool) -> None:
        self._best, self._sign = best, 1 if prefers_first else -1
        self.asked: list[tuple[Context, tuple[str, ...]]] = []

    def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
        names = tuple(kernels.compiled.figures)
        self.asked.append((kernels.context, names))
        if names == (WHOLE_KERNEL,):
            return {WHOLE_KERNEL: 1.0 if kernels.context == self._best else 2.0}
        return {name: 10.0 + self._sign * n for n, name in enumerate(names)}


def chosen(
    compiled: Compiled,
    timer: ScriptedTimer | None,
    arch: str = "sm_80",
    decided: Decided = NOTHING_DECIDED,
) -> ChosenKernel:
    return chosen_kernel(lambda threads: whole("chain", threads), arch, compiled, timer, decided)


def marks_of(made: ChosenKernel) -> set[int]:
    return {NOTHING_DECIDED.mark_of_way(*pick) for pick in made.picks.items()}


@pytest.mark.parametrize("best", [CONTEXTS[0], CONTEXTS[4]])
def test_the_context_that_is_fastest_is_taken(best: Context) -> None:
    timer = ScriptedTimer(best, prefers_first=True)
    assert chosen(compiling(32), timer).context == best
    assert [asked for asked, names in timer.asked if names == (WHOLE_KERNEL,)] == list(CONTEXTS)


@pytest.mark.parametrize(("prefers_first", "way"), [(True, "recorded"), (False, "plain")])
def test_each_kernel_is_measured_by_itself_in_each_context(prefers_first: bool, way: str) -> None:
    timer = ScriptedTimer(CONTEXTS[0], prefers_first=prefers_first)
    found = chosen(compiling(32), timer)
    assert {nest.code.name.partition("_")[0] for nest in found.stages.nests} == {way}
    by_itself = [names for _, names in timer.asked if names != (WHOLE_KERNEL,)]
    assert by_itself == [("only_0", "only_1")] * len(CONTEXTS)  # one kernel in two ways


def test_sides_of_one_graph_have_one_choice_and_the_second_measures_nothing() -> None:
    base = chosen(compiling(32), ScriptedTimer(CONTEXTS[0], prefers_first=False))
    marks = frozenset({*marks_of(base), mark_of_context(base.context)})
    timer = ScriptedTimer(CONTEXTS[4], prefers_first=True)  # it would choose otherwise
    head = chosen(compiling(32), timer, decided=Decided(marks))
    assert (head.context, head.text) == (base.context, base.text)
    assert timer.asked == []


def test_a_changed_model_has_the_base_s_ways_and_a_context_of_its_own() -> None:
    base = chosen(compiling(32), ScriptedTimer(CONTEXTS[0], prefers_first=False))
    timer = ScriptedTimer(CONTEXTS[4], prefers_first=True)
    head = chosen(compiling(32), timer, decided=Decided(frozenset(marks_of(base))))
    assert (head.context, head.picks) == (CONTEXTS[4], base.picks)
    assert {names for _, names in timer.asked} == {(WHOLE_KERNEL,)}


def test_kernels_are_known_by_their_digest_whatever_their_number() -> None:
    (symbol,) = whole("chain", 128).ways
    marks = frozenset({Decided(identities={"kernel1": "d"}).mark_of_way("kernel1", "plain")})
    decided = Decided(marks, {symbol: "d"})
    assert list(decided.of(whole("chain", 128)).ways[symbol]) == ["plain"]
    assert list(Decided(marks).of(whole("chain", 128)).ways[symbol]) == ["recorded", "plain"]


def test_what_another_card_decided_and_does_not_fit_is_chosen_anew() -> None:
    marks = frozenset({mark_of_context(Context(3, 256))})
    found = chosen(compiling(128), None, decided=Decided(marks))
    assert found.context == Context(2, 256)


def test_without_a_device_the_most_threads_without_spills_are_taken() -> None:
    assert chosen(compiling(32), None).context == Context(3, 256)
    found = chosen(compiling(128), None)
    assert found.context == Context(2, 256)
    (reason,) = found.refused
    assert reason.startswith("3 x 256 threads: a multiprocessor holds 2 blocks (128 registers, 0 b")
    assert chosen(compiling(80, spilled_bytes=8), None).context == Context(3, 256)


def test_what_fits_nowhere_is_refused_with_the_reasons() -> None:
    with pytest.raises(NotOfferedError, match=r"^a multiprocessor holds 0 blocks"):
        chosen(compiling(32, shared_bytes=200_000), None)


def test_an_architecture_whose_size_nobody_knows_is_refused() -> None:
    with pytest.raises(NotOfferedError, match="what sm_70 holds at once is not known"):
        chosen(compiling(32), None, arch="sm_70")


def test_a_kernel_that_does_not_run_is_no_choice() -> None:
    class Failing(ScriptedTimer):
        def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
            raise NotOfferedError("its kernel does not run (a trap)")

    with pytest.raises(NotOfferedError, match="its kernel does not run"):
        chosen(compiling(32), Failing(CONTEXTS[0], prefers_first=True))


def test_a_text_that_would_take_minutes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_kernel_module, "_MOST_TEXT", 1000)
    with pytest.raises(NotOfferedError, match="MB of text, and 2 at most"):
        chosen(compiling(32), None)


@pytest.mark.parametrize("dies", [True, False])
def test_a_context_that_could_not_be_timed_leaves_open_whether_there_is_a_kernel(
    dies: bool,
) -> None:
    """All others may be refused for good: that one would have to be timed again."""

    class DyingTimer(ScriptedTimer):
        def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
            if kernels.context == CONTEXTS[-1] and dies:
                raise NotOfferedNowError("the process that times its kernels was killed")
            return super().milliseconds(program, kernels)

    with pytest.raises(NotOfferedError, match="registers") as raised:
        chosen(compiling(70_000), DyingTimer(CONTEXTS[0], prefers_first=True))
    assert isinstance(raised.value, NotOfferedNowError) is dies
