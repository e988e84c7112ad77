"""Loads an artifact with the runtime that it names, and imports no other."""

import hashlib
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
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.registry import is_watched, runtime_named
from tunegate.runtimes.runtime import Inference, Loaded, TimedLoaded, Watched
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


def bound_inference(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> Inference:
    """Returns a function that runs one inference on the inputs of `seed`, by these rules or the
    artifact's own. Of given cases it takes `case`, or one that the seed chooses."""
    loaded, artifact = _load(directory, libraries)
    return loaded.bound(seeded_inputs(inputs or artifact.inputs, seed, case))


def timed_inference(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> tuple[Inference, float]:
    """Returns the same, and the least processor time of a few loads, from the files to the end of
    the first inference, in milliseconds. Call it in a process that has loaded the artifact before:
    then imports are no part of it. By the clock two equal models differ by a third on a busy
    machine."""
    feed = seeded_inputs(inputs or ArtifactFile.read(directory).inputs, seed, case)
    run, milliseconds = _timed_load(directory, libraries, feed)
    times = [milliseconds]
    while len(times) < _LOADS and sum(times) < _MAX_LOADING_MS:
        del run  # first, so that the peak of memory is not that of two
        run, milliseconds = _timed_load(directory, libraries, feed)
        times.append(milliseconds)
    return run, min(times)


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
) -> tuple[Inference, float]:
    began = time.process_time()
    loaded, _ = _load(directory, libraries)
    run = loaded.bound(feed)
    return run, 1e3 * (time.process_time() - began)


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
