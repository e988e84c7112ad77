"""Runs a model on drawn inputs within a time limit: whether ONNX Runtime accepts them, and whether
the outputs tell anything."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tunegate.artifacts.inputs import Columns, Constant, Files, Integers
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.reference.session import LEVELS, NO_OPTIMIZATION, ReferenceSession, Stopping
from tunegate.models.seeded_inputs import checked_feeds
from tunegate.models.trial_messages import RUN_SECONDS, Outcome
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.system.processes.conversations import is_time_up, waited_for_core
from tunegate.system.processes.memory_limit import lacked_memory

SEEDS = (0, 1)
MAX_SECONDS = 20.0
"""The time limit of all runs of one model together."""
MOST_OUTPUT_BYTES = 2**30
"""Whoever checks outputs holds those of two inputs, of a build and of the reference."""
_LOOK_SECONDS = 0.1
_SLOW_SECONDS = 2.0
"""A slower model is run once: a second run is not worth its time."""


class Trial:
    """A model to run on one set of inputs after another. Raises ONNX Runtime's error if it cannot
    load the model."""

    def __init__(
        self, model: Path, seconds: float = MAX_SECONDS, *, is_light: bool = False
    ) -> None:
        level = NO_OPTIMIZATION if is_light else LEVELS[-1]
        self._session = ReferenceSession(model, level=level)
        self.session_as_written = self._session if is_light else None
        self._deadline = time.monotonic() + seconds

    def allow(self, seconds: float) -> None:
        """Grants this much time again."""
        self._deadline = time.monotonic() + seconds

    def run(self, tensors: Sequence[ArtifactTensor], seed_seconds: float = 0.0) -> Outcome:
        """Runs the model on the inputs of two seeds, and on all given cases. With `seed_seconds`
        each seed has these, whatever time is left."""
        outputs: list[Sequence[Any]] = []
        seconds, size_bytes = 0.0, 0
        for number, feed in enumerate(checked_feeds(tensors, SEEDS)):
            seconds_left = min(RUN_SECONDS, self._deadline - time.monotonic())
            seconds_left = seed_seconds if seed_seconds and number < len(SEEDS) else seconds_left
            if seconds_left <= 0:
                return Outcome(is_late=True, seconds=seconds)
            began, worked = time.monotonic(), time.process_time()
            try:
                outputs.append(self._run_once(feed, seconds_left))
            except TimeoutError:
                return Outcome(is_late=True, seconds=seconds_left)
            except Exception as error:  # its errors have no common base class
                if lacked_memory(error):  # no other values would help: the build reports it
                    raise
                return Outcome(problem=error_line(error))
            # Without the seconds in which others had the cores.
            took = min(time.monotonic() - began, time.process_time() - worked)
            seconds = min(seconds, took) if seconds else took
            size_bytes = sum(getattr(each, "nbytes", 0) for each in outputs[0])
            if took > _SLOW_SECONDS or size_bytes > MOST_OUTPUT_BYTES:
                break
        differ = len(outputs) > 1 and any(map(_is_drawn, tensors))
        shapes = tuple(getattr(each, "shape", ()) for each in outputs[0])
        dull = _dull(outputs, differ=differ)
        return Outcome(dull=dull, seconds=seconds, shapes=shapes, size_bytes=size_bytes)

    def refuses(self, tensors: Sequence[ArtifactTensor]) -> bool:
        """Returns whether ONNX Runtime rejects values drawn by these rules, or their bounds."""
        if not self.run(tensors).runs:
            return True
        return any(not self.run(bound).runs for bound in _bounds(tensors))

    def _run_once(self, feed: Mapping[str, Any], seconds: float) -> Sequence[Any]:
        stop = Stopping()
        over = threading.Event()
        threading.Thread(target=_stop_in_time, args=(stop, over, seconds), daemon=True).start()
        try:
            return self._session.run(feed, stop)
        except Exception:
            if stop.is_set:
                raise TimeoutError from None
            raise
        finally:
            over.set()


def _stop_in_time(stop: Stopping, over: threading.Event, seconds: float) -> None:
    """Stops a run after `seconds`, not counting time in which others had the cores."""
    began, waited = time.monotonic(), waited_for_core(os.getpid())
    while not over.wait(min(_LOOK_SECONDS, seconds)):
        waiting = waited_for_core(os.getpid()) - waited
        if is_time_up(time.monotonic() - began, seconds, waiting):
            stop.set()
            return


def _bounds(tensors: Sequence[ArtifactTensor]) -> list[tuple[ArtifactTensor, ...]]:
    """Returns the inputs filled with the largest integers that may be drawn."""
    if not any(_largest(tensor) for tensor in tensors):
        return []
    return [tuple(_largest(tensor) or tensor for tensor in tensors)]


def _largest(tensor: ArtifactTensor) -> ArtifactTensor | None:
    values = tensor.rule.values if tensor.rule is not None else None
    if tensor.rule is None or not isinstance(values, Integers):
        return None
    rule = msgspec.structs.replace(tensor.rule, values=Constant(values.high))
    return msgspec.structs.replace(tensor, rule=rule)


def _is_drawn(tensor: ArtifactTensor) -> bool:
    """Returns whether two seeds give two values."""
    values = tensor.rule.values if tensor.rule is not None else None
    parts = values.parts if isinstance(values, Columns) else (values,)
    is_empty = 0 in tensor.shape
    return not is_empty and any(not isinstance(part, Constant | Files) for part in parts)


def _dull(outputs: Sequence[Sequence[Any]], *, differ: bool) -> str:
    """Returns why the outputs of some seeds tell nothing, '' if they tell something."""
    first = [each for each in outputs[0] if isinstance(each, np.ndarray)]
    if len(first) != len(outputs[0]) or not first:
        return ""  # maps, sequences and absent values
    if not any(each.size for each in first):
        return "its outputs are empty"
    if any(each.dtype.kind == "f" and np.isnan(each).any() for each in first):
        return "its outputs have NaN"
    if differ and all(map(_is_equal, outputs[0], outputs[1])):
        return "its outputs are the same whatever it is given"
    return ""


def _is_equal(first: Any, other: Any) -> bool:
    return bool(np.shape(first) == np.shape(other) and np.array_equal(first, other))
