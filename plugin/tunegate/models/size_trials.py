"""Finds the sizes that `init` writes: the first likely ones at which ONNX Runtime runs the model,
tried in a child with limits of time and memory."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import onnx

from tunegate.artifacts.changes import ModelInput
from tunegate.models.finder import FoundModel, ModelTrial, evidence_at
from tunegate.models.model_inputs import graph_inputs, kind_of_input, stated_size
from tunegate.models.sizes import Guesses, size_candidates
from tunegate.models.trial_messages import (
    RUN_SECONDS,
    NotLoaded,
    TrialReply,
    TriedSizes,
    TrySizes,
    too_slow,
)
from tunegate.regular_files import opened_inside
from tunegate.review.input_shapes import ShapeLevel, is_symbol, resolve_shapes
from tunegate.system.onnx_scan import parsed_model
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import MemoryLimit, memory_limit

TOTAL_SECONDS = 120.0
"""The time for all trials of `init` together."""
_MODEL_SECONDS = 30.0
_SLOW_SECONDS = 2.0
"""Nobody would gate at a slower size if a smaller one is as likely."""
_MAX_TRIES = 24
_MAX_DULL = 3
_MAX_LARGER = 4
_ROWS = 16
_MOST_MEMORY_BYTES = 8 * 2**30
"""A size at which a model takes more memory is not likely."""
_SHOWN = 3
_MAX_REASON = 120
_NUMBER = re.compile(r"(?<![\w.:])\d{1,6}(?![\w.]*\w)")
_PREFIX = re.compile(r"^.*?Status Message: (/\S+ )?", re.DOTALL)
"""ONNX Runtime's words before the cause of a rejection."""
_MAX_NAMED = 65536
_MOST_NAMED = 4
"""The most sizes to try from one rejection."""
_CHILD = "tunegate.models.trial_child"

Ask = Callable[[TrySizes], "TrialReply | str"]
"""Asks the child; a text says how it died."""


class _Run(NamedTuple):
    guesses: Guesses
    reply: TriedSizes


def try_models(
    root: Path, models: Sequence[FoundModel], seconds: float = TOTAL_SECONDS
) -> tuple[FoundModel, ...]:
    """Returns the models with sizes at which ONNX Runtime runs them. Models that the time limit
    leaves untried keep their likely sizes."""
    deadline = time.monotonic() + seconds
    with TemporaryFolder() as scratch:
        talk = _Children(Path(scratch))
        try:
            return tuple(_try_model(root, model, talk, deadline) for model in models)
        finally:
            talk.end()


_UNFINISHED = "the process did not finish"


class _Children:
    """The current child: a new one starts after one died."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._child: Child[TrialReply] | None = None

    def ask(self, request: TrySizes) -> TrialReply | str:
        talk = Conversation(self._begin, request)
        limit = request.seconds + RUN_SECONDS
        converse([talk], at_once=1, limit_seconds=limit, on_end=lambda _: None)
        if talk.died is not None:
            self._child = None
            return str(talk.died)
        return talk.replies[0]

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _begin(self) -> Child[TrialReply]:
        if self._child is None:
            kind = cast("type[TrialReply]", TrialReply)
            log = self.scratch / "trials.log"
            memory = MemoryLimit(min(memory_limit().limit_bytes, _MOST_MEMORY_BYTES))
            self._child = Child(_CHILD, kind, variables={}, memory=memory, log=log)
        return self._child


def _try_model(root: Path, model: FoundModel, talk: _Children, deadline: float) -> FoundModel:
    if model.inputs is None:
        return model
    if time.monotonic() >= deadline:
        return _add_note(model, "its sizes were not tried: there was no time left")
    proto = _load_model(root, model.path)
    if proto is None:
        return model
    candidates = size_candidates(proto, evidence_at(root, model.path, proto))
    file = root / model.path
    return choose_sizes(
        file, model, candidates, proto, talk.ask, scratch=talk.scratch, deadline=deadline
    )


def _load_model(root: Path, path: str) -> onnx.ModelProto | None:
    file = opened_inside(root, path)
    if file is None:
        return None
    with file:
        return parsed_model(file.read())


def _add_note(model: FoundModel, note: str) -> FoundModel:
    return msgspec.structs.replace(model, trial=msgspec.structs.replace(model.trial, note=note))


def choose_sizes(
    file: Path,
    model: FoundModel,
    candidates: Iterator[Guesses],
    proto: onnx.ModelProto,
    ask: Ask,
    *,
    scratch: Path,
    deadline: float,
) -> FoundModel:
    """Returns the model with the first sizes that run fast and whose outputs tell something; the
    next best if there are none."""
    deadline = min(deadline, time.monotonic() + _MODEL_SECONDS)
    request = TrySizes(
        file=str(file.absolute()),
        path=model.path,
        shapes={},
        scratch=str(scratch / "model"),
        seconds=RUN_SECONDS,
    )
    trials = _Trials(request, proto, ask, deadline)
    runs = trials.first_good(candidates)
    if not runs and trials.refused:
        runs = trials.first_good(_of_several_rows(model.guesses))
    if trials.not_loaded:
        return _add_note(model, trials.not_loaded)
    if not runs or (trials.refusal and all(run.reply.outcome.is_late for run in runs)):
        return _none_runs(model, trials.tried, trials.refusal)
    best = min(runs, key=_rank)
    if _is_one_step(best.reply, proto) and best.guesses:
        best = trials.of_more_steps(best, candidates) or best
    return _record_choice(model, best, trials.tried)


class _Trials:
    """The sizes tried for one model: one line each, why the last was `refused`, the last `refusal`
    of any, and why the model cannot be loaded."""

    def __init__(
        self, request: TrySizes, proto: onnx.ModelProto, ask: Ask, deadline: float
    ) -> None:
        self._request, self._proto = request, proto
        self._inputs = graph_inputs(proto.graph)
        self._ask, self._deadline = ask, deadline
        self.tried: list[str] = []
        self.refused = self.refusal = self.not_loaded = ""

    def first_good(self, candidates: Iterator[Guesses]) -> Sequence[_Run]:
        """Runs sizes until one is good, and returns all that run."""
        runs: list[_Run] = []
        named_sizes: list[Guesses] = []
        for guesses in _named_first(candidates, named_sizes):
            if any(_is_slow(each) and _is_larger(guesses, each.guesses) for each in runs):
                continue
            if self._is_over():
                break
            run = self._run_at(guesses)
            if run is not None:
                runs.append(run)
            elif self.refused:
                named_sizes += _named_sizes(self.refused, guesses)
            dull = sum(bool(each.reply.outcome.dull) for each in runs)
            is_good = run is not None and (_rank(run) == 0 or not run.guesses)
            if is_good or self.not_loaded or dull >= _MAX_DULL:
                break
        return runs

    def of_more_steps(self, run: _Run, candidates: Iterator[Guesses]) -> _Run | None:
        """Returns the first larger sizes at which the model makes more than one step."""
        larger = (candidate for candidate in candidates if _is_larger(candidate, run.guesses))
        for guesses in islice(larger, _MAX_LARGER):
            if self._is_over():
                break
            longer_run = self._run_at(guesses)
            if longer_run is None or _rank(longer_run) > 0:
                continue
            if not _is_one_step(longer_run.reply, self._proto):
                return longer_run
        return None

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline or len(self.tried) >= _MAX_TRIES

    def _run_at(self, guesses: Guesses) -> _Run | None:
        request = msgspec.structs.replace(
            self._request,
            shapes=_shapes(self._inputs, guesses),
            seconds=max(1.0, min(RUN_SECONDS, self._deadline - time.monotonic())),
        )
        reply = self._ask(request)
        self.refused = ""
        if isinstance(reply, NotLoaded):
            self.not_loaded = reply.reason
            return None
        sizes = sizes_in_words(guesses)
        if isinstance(reply, str):
            self.refused = self.refusal = f"the process {reply}"
            self.tried.append(f"{sizes}: {self.refused}")
            return None
        self.refused = reply.outcome.problem
        self.refusal = self.refused or self.refusal
        self.tried.append(f"{sizes}: {_outcome_text(reply)}")
        return None if self.refused else _Run(guesses, reply)


def _named_first(candidates: Iterator[Guesses], named_sizes: list[Guesses]) -> Iterator[Guesses]:
    """Yields each candidate once; after a rejection, the sizes that ONNX Runtime named in it come
    first."""
    tuples: set[tuple[int, ...]] = set()
    while True:
        guesses = named_sizes.pop(0) if named_sizes else next(candidates, None)
        if guesses is None:
            return
        sizes = tuple(guess.size for guess in guesses)
        if sizes not in tuples:
            tuples.add(sizes)
            yield guesses


def _named_sizes(problem: str, guesses: Guesses) -> list[Guesses]:
    """Returns the guesses with a size of the rejection replaced by another number in it, as in
    `Got: 128 Expected: 64`. Image sides are left alone: theirs occur by chance."""
    numbers = [int(each) for each in _NUMBER.findall(problem)]
    kinds = {guess.kind for guess in guesses if guess.size > 1 and guess.size in numbers} - {
        "image"
    }
    others = dict.fromkeys(n for n in reversed(numbers) if 1 < n <= _MAX_NAMED)
    why = "ONNX Runtime names it where it refuses others"
    return [
        tuple(
            msgspec.structs.replace(guess, size=number, why=why, is_said=False)
            if guess.kind == kind and not guess.is_sum
            else guess
            for guess in guesses
        )
        for kind in sorted(kinds)
        for number in islice(others, _MOST_NAMED)
    ]


def _of_several_rows(guesses: Guesses) -> Iterator[Guesses]:
    """Yields the likeliest sizes with several rows in place of a batch of one: a model of frames
    takes no single one."""
    rows = tuple(
        msgspec.structs.replace(guess, size=_ROWS, why="rows: ONNX Runtime refuses a single one")
        if guess.kind == "batch" and not guess.is_sum
        else guess
        for guess in guesses
    )
    if rows != guesses:
        yield rows


def _rank(run: _Run) -> int:
    """Returns the rank of a run: good ones first, then those that tell little, then slow ones."""
    outcome = run.reply.outcome
    if outcome.is_late:
        return 3
    return 2 * _is_slow(run) + bool(outcome.dull)


def _is_slow(run: _Run) -> bool:
    """Returns whether it takes too long; sizes that the file itself states may take their time."""
    outcome = run.reply.outcome
    is_said = any(guess.is_said for guess in run.guesses)
    return outcome.is_late or (outcome.seconds > _SLOW_SECONDS and not is_said)


def _is_larger(guesses: Guesses, than: Guesses) -> bool:
    pairs = [(one.size, other.size) for one, other in zip(guesses, than, strict=True)]
    return all(one >= other for one, other in pairs) and any(one > other for one, other in pairs)


def _is_one_step(reply: TriedSizes, proto: onnx.ModelProto) -> bool:
    """Returns whether an output has exactly one step along an open axis, and no output more."""
    extents = [
        shape[axis]
        for value, shape in zip(proto.graph.output, reply.outcome.shapes, strict=False)
        for axis, dim in enumerate(kind_of_input(value).tensor.shape.dim)
        if axis > 0 and axis < len(shape) and stated_size(dim) is None
    ]
    return bool(extents) and max(extents) == 1


def _record_choice(model: FoundModel, run: _Run, attempts: Sequence[str]) -> FoundModel:
    outcome = run.reply.outcome
    note = ""
    if outcome.dull:
        note = f"on drawn inputs {outcome.dull}: give values under inputs:"
    elif outcome.is_late:
        note = too_slow(RUN_SECONDS, has_sizes=bool(run.guesses))
    trial = ModelTrial(
        tried=_shorten(attempts, sizes_in_words(run.guesses)),
        inputs=run.reply.inputs,
        rules=dict(run.reply.rules),
        note=note,
        seconds=outcome.seconds,
    )
    return msgspec.structs.replace(model, guesses=run.guesses, trial=trial)


def _none_runs(model: FoundModel, attempts: Sequence[str], refused: str) -> FoundModel:
    note = f"ONNX Runtime runs at none of the sizes that were tried ({_cause(refused)})"
    if not model.guesses:
        note = f"ONNX Runtime does not run it on drawn inputs ({_cause(refused)})"
    if refused.startswith(_UNFINISHED):  # on a busy machine any size takes that long
        note = f"its sizes could not be tried: {refused}"
    return msgspec.structs.replace(model, trial=ModelTrial(tried=_shorten(attempts, ""), note=note))


def _shorten(attempts: Sequence[str], chosen_line: str) -> tuple[str, ...]:
    """Returns the lines of the chosen sizes and of the first others."""
    own = [
        attempt for attempt in attempts if chosen_line and attempt.startswith(f"{chosen_line}: ")
    ]
    others = [attempt for attempt in attempts if attempt not in own]
    others_left = len(others) - _SHOWN
    more = (f"{others_left} more",) if others_left > 0 else ()
    return (*others[:_SHOWN], *more, *own)


def _outcome_text(reply: TriedSizes) -> str:
    outcome = reply.outcome
    if outcome.problem:
        return f"refused ({_short(outcome.problem)})"
    if outcome.is_late:
        return f"not finished in {RUN_SECONDS:.0f} s"
    dull = f", {outcome.dull}" if outcome.dull else ""
    return f"{milliseconds_in_words(outcome.seconds)}{dull}"


def milliseconds_in_words(seconds: float) -> str:
    """Returns the time of an inference in two digits: it is no measurement. Under a millisecond it
    is mostly the time to begin."""
    milliseconds = 1e3 * seconds
    if milliseconds < 1:
        return "less than 1 ms"
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"  # noqa: PLR2004


def _cause(text: str) -> str:
    return " ".join(_PREFIX.sub("", text).split())


def _short(text: str) -> str:
    cause = _cause(text)
    return cause if len(cause) <= _MAX_REASON else f"{cause[: _MAX_REASON - 1]}…"


def sizes_in_words(guesses: Guesses) -> str:
    """Returns the sizes by symbol, or by position."""
    sizes = {
        guess.symbol if is_symbol(guess.symbol) else f"{guess.input}[{guess.axis}]": guess.size
        for guess in guesses
        if not guess.is_sum
    }
    return ", ".join(f"{name} {size}" for name, size in sizes.items()) or "as it is"


def _shapes(inputs: Sequence[ModelInput], guesses: Guesses) -> dict[str, tuple[int, ...]]:
    sizes: dict[str, dict[int, int]] = {}
    for guess in guesses:
        sizes.setdefault(guess.input, {})[guess.axis] = guess.size
    whole = {
        value.name: tuple(
            sizes[value.name].get(axis, size or 1)
            for axis, size in enumerate(value.dimensions or (None,) * len(sizes[value.name]))
        )
        for value in inputs
        if value.name in sizes
    }
    return resolve_shapes(inputs, [ShapeLevel(shapes=whole)]).shapes
