"""A model opened by ONNX Runtime on a GPU, as it is shipped."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunegate.artifacts.candidates import GRAPH, LAUNCH, PRECISION
from tunegate.errors import TunegateError, UnsupportedModelError
from tunegate.models.reference.onnx_runtime import onnxruntime, open_session, timed_options
from tunegate.runtimes.onnxruntime_cuda.runtime import CUDA, provider_options
from tunegate.system.nvidia.gpus import visible_gpus, why_a_library_wins
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.wording import plural


class CudaModel:
    """An ONNX file, loaded in this process on the first visible GPU."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact
        self._without_graphs = ""
        self._places: DeviceBinding | None = None

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        return self._bound_to(feed).run(feed)

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        return self._bound_to(feed).bound(feed)

    def notes(self) -> Sequence[str]:
        placement = told_of_placement(placed_nodes(self._session), CUDA)
        without = f"without CUDA graphs, with them: {self._without_graphs}"
        faster = why_a_library_wins(self._artifact.settings.get(PRECISION, ""), visible_gpus())
        return [
            each for each in (placement, without if self._without_graphs else "", faster) if each
        ]

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        """Returns the milliseconds of each operator. Each kernel is waited for, so the times are
        the device's, and no graph is captured."""
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        # Reads the graph with the `onnx` package, which would double the time to start.
        from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms  # noqa: PLC0415

        open_file = partial(
            opened_on_device, self._file, self._plain_settings, self._artifact.threads
        )
        return profiled_ms(self._file, feed, inferences, open_file)

    def _bound_to(self, feed: Mapping[str, Any]) -> DeviceBinding:
        if self._places is None:
            self._places = DeviceBinding(self._session, feed, "cuda")
        return self._places

    @property
    def _plain_settings(self) -> dict[str, str]:
        return {key: value for key, value in self._artifact.settings.items() if key != LAUNCH}

    @cached_property
    def _session(self) -> Any:
        """Opens the session with CUDA graphs if requested, and without them if ONNX Runtime
        refuses: then some operators are on the CPU."""
        settings, threads = self._artifact.settings, self._artifact.threads
        try:
            return opened_on_device(self._file, settings, threads)
        except Exception as error:
            # its errors have no common base class
            if settings.get(LAUNCH) != GRAPH or isinstance(error, TunegateError):
                raise
            self._without_graphs = (str(error).strip().splitlines() or [""])[-1][:200]
            return opened_on_device(self._file, self._plain_settings, threads)


# Opens a session on the device, or fails. Left alone, ONNX Runtime opens a session on the CPU if
# the CUDA libraries cannot be loaded, and runs operators there that the provider lacks; at most a
# log says so.

_CPU = "CPUExecutionProvider"
_RECORD = "session.record_ep_graph_assignment_info"
_NO_DEVICE = (
    "the CUDA provider does not start: its libraries (CUDA, cuDNN) or a device are missing. Run "
    "nvidia-smi, and pip install 'onnxruntime-gpu[cuda,cudnn]'"
)


def opened_on_device(
    model: Path,
    settings: Mapping[str, str],
    threads: int,
    profile: Path | None = None,
    optimized: Path | None = None,
) -> Any:
    """Opens a session with all optimizations. Operator times go to files that begin with `profile`,
    the optimized graph to `optimized`. Raises UnsupportedModelError if the device cannot take the
    model."""
    options = timed_options(threads)
    options.add_session_config_entry(_RECORD, "1")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    # It reports what it loads on standard output.
    with contextlib.redirect_stdout(sys.stderr):
        onnxruntime.preload_dlls()
        providers = [(CUDA, provider_options(settings)), _CPU]
        session = open_session(model, options, providers, enable_fallback=0).session
    require_device(session.get_providers())
    return session


def require_device(providers: list[str]) -> None:
    """Raises UnsupportedModelError if the session runs on the CPU alone."""
    if CUDA not in providers:
        raise UnsupportedModelError(_NO_DEVICE)


# Inputs and outputs that stay on a device, so that an inference contains no copies.


class DeviceBinding:
    """Buffers of a session's inputs on a device. They stay the same for each feed, as a CUDA graph
    reads where it was captured. Outputs of known sizes stay, too."""

    def __init__(self, session: Any, feed: Mapping[str, Any], device: str) -> None:
        self._session, self._device = session, device
        self._binding = session.io_binding()
        self._inputs: dict[str, Any] = {}
        for each in session.get_inputs():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(
                _contiguous(feed[each.name]), device, 0
            )
            self._inputs[each.name] = value
            self._binding.bind_ortvalue_input(each.name, value)
        for each in session.get_outputs():
            self._binding.bind_output(each.name, device)

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns copies of the outputs."""
        self.bound(feed)()
        outputs: Sequence[Any] = self._binding.copy_outputs_to_cpu()
        return outputs

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Copies the feed, and returns a function that runs one inference on it until the device
        has finished."""
        for name, place in self._inputs.items():
            place.update_inplace(_contiguous(feed[name]))
        session, binding = self._session, self._binding

        def inference() -> None:
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()

        return inference


def _contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value)


# Operators that ONNX Runtime runs elsewhere than requested.

_MOST_NAMED = 5


class PlacedNode(NamedTuple):
    """A node of the optimized graph: the provider that runs it, and its operator."""

    provider: str
    operator: str


def placed_nodes(session: Any) -> list[PlacedNode]:
    """Returns all nodes of a session that records their placement."""
    return [
        PlacedNode(part.ep_name, node.op_type)
        for part in session.get_provider_graph_assignment_info()
        for node in part.get_nodes()
    ]


def told_of_placement(nodes: Iterable[PlacedNode], provider: str) -> str:
    """Returns how many nodes another provider runs, and which operators they are; '' for none.
    Raises UnsupportedModelError if this provider runs nothing."""
    every = list(nodes)
    away = Counter(node.operator for node in every if node.provider != provider)
    if not away:
        return ""
    count = away.total()
    if count == len(every):
        raise UnsupportedModelError("ONNX Runtime has none of its operators on the device")
    operators = ", ".join(
        operator if times == 1 else f"{operator} ({times})"
        for operator, times in away.most_common(_MOST_NAMED)
    )
    more = ", ..." if len(away) > _MOST_NAMED else ""
    verb = "runs" if count == 1 else "run"
    return f"{count} of {plural(len(every), 'node')} {verb} on the CPU: {operators}{more}"
