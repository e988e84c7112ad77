"""Loads an artifact with the runtime that it names, and imports no other."""

import hashlib
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from tunegate.artifacts.builds import Build
from tunegate.artifacts.changes import Side
from tunegate.measure.bench_messages import (
    OutputSample,
    ProfileBoth,
    ProfiledBoth,
    Sides,
    other_side,
)
from tunegate.models.operator_libraries import Libraries, library_files, select_by_digest
from tunegate.models.seeded_inputs import has_given_values, seeded_inputs
from tunegate.runtimes.registry import is_watched, runtime_named
from tunegate.runtimes.runtime import Inference, Loaded, TimedLoaded, Watched
from tunegate.system.clock import derive_seed
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, built_artifact

_LOADS, _MAX_LOADING_MS = 5, 300.0
"""So many loads are timed, unless they take longer: one of a large model is steady enough."""


def load(directory: Path | str) -> Loaded:
    """Returns the loaded artifact. Raises ArtifactError, and ConfigError if its runtime is not
    installed."""
    loaded, _ = _load(Path(directory))
    return loaded


def titled_artifact(directory: Path) -> Build:
    """Returns the artifact as a build with its runtime's title. Raises ArtifactError, and
    ConfigError if its runtime is not installed."""
    build = built_artifact(directory)
    return msgspec.structs.replace(build, title=runtime_named(build.runtime).title)


def bound_inferences(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> tuple[Inference, ...]:
    """Returns functions that run one inference each, to be called in turn. The first runs on the
    inputs of `seed`, by these rules or the artifact's own, the others on more inputs where these
    are small. Of given cases there is `case` alone, or the one that the seed chooses."""
    loaded, artifact = _load(directory, libraries)
    return _bind_in_turn(loaded, artifact, inputs or artifact.inputs, seed, case)


def timed_inferences(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> tuple[tuple[Inference, ...], float]:
    """Returns the same, and the least processor time of a few loads, from the files to the end of
    the first inference, in milliseconds. Call it in a process that has loaded the artifact before:
    then imports are no part of it. By the clock two equal models differ by a third on a busy
    machine."""
    artifact = ArtifactFile.read(directory)
    feed = seeded_inputs(inputs or artifact.inputs, seed, case)
    loaded, milliseconds = _timed_load(directory, libraries, feed)
    times = [milliseconds]
    while len(times) < _LOADS and sum(times) < _MAX_LOADING_MS:
        del loaded  # first, so that the peak of memory is not that of two
        loaded, milliseconds = _timed_load(directory, libraries, feed)
        times.append(milliseconds)
    return _bind_in_turn(loaded, artifact, inputs or artifact.inputs, seed, case), min(times)


_MAX_TURN, _TURN_NUMBERS = 64, 2**15
"""A launch has at most so many inputs in turn, and so many numbers in them and their outputs."""


def _bind_in_turn(
    loaded: Loaded,
    artifact: ArtifactFile,
    inputs: Sequence[ArtifactTensor],
    seed: int,
    case: int | None,
) -> tuple[Inference, ...]:
    """Returns inferences on inputs of their own. With one input for all, the caches would hold
    each row of a table that is looked up, and the processor foresee each branch of a tree, unlike
    in production. A device's inputs have one place. Values that the user gave stay one case."""
    tensors = [*inputs, *artifact.outputs]
    count = _TURN_NUMBERS // max(1, sum(math.prod(each.shape) for each in tensors))
    if artifact.device != "cpu" or has_given_values(inputs):
        count = 1
    others = (derive_seed(seed, "turn", number) for number in range(1, min(_MAX_TURN, count)))
    return tuple(loaded.bound(seeded_inputs(inputs, each, case)) for each in (seed, *others))


_MAX_SAMPLED, _MAX_OUTPUTS = 4096, 64


def sampled_outputs(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> list[OutputSample]:
    """Returns the shape of each of the first 64 outputs of one inference, and up to 4,096 of its
    values at even distances."""
    loaded, artifact = _load(directory, libraries)
    outputs = loaded.run(seeded_inputs(inputs or artifact.inputs, seed, case))
    return [_sample_values(output) for output in outputs[:_MAX_OUTPUTS]]


def _sample_values(output: object) -> OutputSample:
    """Returns no values of what is no tensor. A word has a number by its digest."""
    if output is None or isinstance(output, list | dict):
        return OutputSample((), ())
    array = np.asarray(output)
    flat = array.reshape(-1)
    sample = flat[np.linspace(0, flat.size - 1, min(flat.size, _MAX_SAMPLED)).astype(np.int64)]
    if array.dtype.kind in "OSU":
        return OutputSample(array.shape, tuple(map(_number_of_word, sample)), is_text=True)
    numbers = sample.astype(np.float64)
    nans = int(np.isnan(numbers).sum())
    return OutputSample(array.shape, tuple(np.nan_to_num(numbers).tolist()), nans=nans)


def _number_of_word(word: object) -> float:
    content = word if isinstance(word, bytes) else str(word).encode()
    return float(int.from_bytes(hashlib.sha256(content).digest()[:6]))


def _timed_load(
    directory: Path, libraries: Libraries, feed: dict[str, Any]
) -> tuple[Loaded, float]:
    began = time.process_time()
    loaded, _ = _load(directory, libraries)
    loaded.bound(feed)()
    return loaded, 1e3 * (time.process_time() - began)


def operators_ms(
    directory: Path, inferences: int, seed: int, libraries: Libraries = ()
) -> dict[str, float]:
    """Returns the median time of each operator in one inference of the whole model."""
    loaded, artifact = _load(directory, libraries)
    return median_times(loaded, seeded_inputs(artifact.inputs, seed), inferences)


def median_times(loaded: Loaded, feed: Mapping[str, Any], inferences: int) -> dict[str, float]:
    """Returns the median milliseconds of each operator, without the first inference, which warms
    up. One that did not run in an inference counts in the others."""
    if not is_watched(loaded):
        return dict(cast("TimedLoaded", loaded).operators_ms(feed, inferences))
    operators = loaded.watched(feed)
    for _ in range(inferences + 1):
        operators.infer()
    times_of: dict[str, list[float]] = defaultdict(list)
    for times in operators.inferences_ms()[1:]:
        for name, milliseconds in times.items():
            times_of[name].append(milliseconds)
    return {name: statistics.median(times) for name, times in times_of.items()}


_LOWER_QUARTILE = 25
_THROWN_AWAY = 1
"""The first inference of a turn finds the other side's numbers in the caches."""


def layers_of_both(request: ProfileBoth) -> ProfiledBoth:
    """Returns the time of each layer of two artifacts inside their models, and the layers that
    differ. The sides take turns in ABBA order, so what else the machine does befalls both."""
    from tunegate.runtimes.changed_layers import differing_layers, layers_of  # noqa: PLC0415

    at_base, at_head = map(Path, request.artifacts)
    loaded = Sides(_load(at_base, request.libraries), _load(at_head, request.libraries))
    feeds = Sides(*(seeded_inputs(each, request.seed) for each in request.inputs))
    models = loaded.map(lambda each: each[0])
    if is_watched(models.base) and is_watched(models.head):
        both = Sides(models.base.watched(feeds.base), models.head.watched(feeds.head))
        base_ms, head_ms = _watched_in_turn(both, request)
    else:
        base_ms, head_ms = _told_in_turn(models, feeds, request)
    differing = differing_layers(
        layers_of(at_base, loaded.base[1]), layers_of(at_head, loaded.head[1]), base_ms, head_ms
    )
    return ProfiledBoth((base_ms, head_ms), (differing.base, differing.head))


def _watched_in_turn(both: Sides[Watched], request: ProfileBoth) -> Sides[dict[str, float]]:
    """Returns the lower quartile of each layer over the inferences of all turns. On a busy machine
    another process gets the core in most inferences, and oftenest during the longest layer."""
    for side in _turns(request.first, request.rounds):
        for _ in range(_THROWN_AWAY + request.inferences):
            both.of(side).infer()
    return both.map(
        lambda each: _lower_quartiles(each.inferences_ms(), _THROWN_AWAY + request.inferences)
    )


def _lower_quartiles(inferences: Sequence[Mapping[str, float]], turn: int) -> dict[str, float]:
    """Returns the lower quartile of each layer. One that did not run in an inference took no time
    in it."""
    counted = [each for at, each in enumerate(inferences) if at % turn >= _THROWN_AWAY]
    names = dict.fromkeys(name for each in counted for name in each)
    times = {name: [each.get(name, 0.0) for each in counted] for name in names}
    return {name: float(np.percentile(each, _LOWER_QUARTILE)) for name, each in times.items()}


def _told_in_turn(
    models: Sides[Loaded], feeds: Sides[dict[str, Any]], request: ProfileBoth
) -> Sides[dict[str, float]]:
    """Returns the mean of each layer over two turns, of models that tell the time of all
    inferences of a turn together."""
    times: Sides[list[Mapping[str, float]]] = Sides([], [])
    for side in _turns(request.first, 1):
        inferences = request.rounds * request.inferences
        times.of(side).append(median_times(models.of(side), feeds.of(side), inferences))
    return times.map(
        lambda turns: {
            name: statistics.fmean(turn.get(name, 0.0) for turn in turns)
            for name in dict.fromkeys(name for turn in turns for name in turn)
        }
    )


def _turns(first: Side, rounds: int) -> list[Side]:
    order: list[Side] = [first, other_side(first)]
    return [*order, *reversed(order)] * rounds


def _load(directory: Path, libraries: Libraries = ()) -> tuple[Loaded, ArtifactFile]:
    """Loads the libraries that the artifact was built with, where they are among those given."""
    artifact = ArtifactFile.read(directory)
    if artifact.libraries:
        # Loads ONNX Runtime, which artifacts of other runtimes do without.
        from tunegate.models.reference.onnx_runtime import use_libraries  # noqa: PLC0415

        use_libraries(library_files(select_by_digest(libraries, artifact.libraries)))
    return runtime_named(artifact.runtime).load(directory, artifact), artifact
