"""ONNX Runtime without telemetry: its builds report what they run to their maker unless this
variable is set before they are loaded (Privacy.md of the package). Models are their owners'
business, and what a session may do is ours."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# Otherwise a model's metadata may choose the settings of the session that measures it.
os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] = "0"

import onnxruntime

from tunegate.models import narrow_types
from tunegate.system.processes.memory_limit import memory_problem

__all__ = [
    "DATA_FOLDER",
    "FallingBack",
    "Opened",
    "error_line",
    "exact_options",
    "float16_tool",
    "onnxruntime",
    "open_session",
    "quantization",
    "timed_options",
    "use_libraries",
]

_ON_CPU = ["CPUExecutionProvider"]
_EVERYTHING = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
_EXACT = "session.x64quantprecision"
DATA_FOLDER = "session.model_external_initializers_file_folder_path"
_WITH_COPIES = (
    f"weights share an int8 zero point, and ONNX Runtime loads no such model with {_EXACT}=1: it "
    "was run with a copy for each weight, which gives the same numbers"
)
_INEXACT = (
    f"ONNX Runtime does not load it with {_EXACT}=1: it was run without, so its int8 sums saturate "
    "on a CPU without VNNI"
)


_UNOPTIMIZED = (
    "ONNX Runtime's own optimizations fail on this model ({}): it was run without them "
    "(graph_optimization_level=ORT_DISABLE_ALL), as production must run it, too"
)


_libraries: list[str] = []


def use_libraries(files: Sequence[Path]) -> None:
    """Gives the sessions that are opened from now on the operators of these libraries, and of no
    others."""
    _libraries[:] = map(str, files)


class Opened(NamedTuple):
    """A session, and a line about how it was opened, '' if nothing went wrong."""

    session: Any
    note: str = ""


class FallingBack:
    """A session that is reopened without optimizations if these fail, on loading or on a run. What
    fails even then is the model's own fault. `options` makes new settings."""

    def __init__(
        self, model: Path | bytes, options: Callable[[], onnxruntime.SessionOptions]
    ) -> None:
        self._model, self._options = model, options
        self._plain: Any = None
        settings = options()
        self._is_optimized = settings.graph_optimization_level == _EVERYTHING
        try:
            self.opened = open_session(model, settings, _ON_CPU)
        except Exception as error:
            plain = self._without_optimizations(error)
            if plain is None:
                raise
            self._fall_to(plain, error)

    def run(self, feed: Mapping[str, Any], options: Any = None) -> Sequence[Any]:
        """Runs one inference and returns every output in the model's order. `options` are those of
        this run, which may be told to stop."""
        try:
            return narrow_types.run(self.opened.session, feed, options)
        except Exception as error:
            is_stopped = options is not None and options.terminate
            plain = None if is_stopped else self._without_optimizations(error)
            if plain is None:
                raise
            with suppress(Exception):  # the first error is the one to report
                outputs = narrow_types.run(plain, feed, options)
                self._fall_to(plain, error)
                return outputs
            raise

    def _without_optimizations(self, error: Exception) -> Any:
        """Returns a session, None if there is nothing to turn off, or it does not load."""
        if not self._is_optimized or memory_problem(error):
            return None
        if self._plain is None:
            options = self._options()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            with suppress(Exception):  # the first error is the one to report
                self._plain = open_session(self._model, options, _ON_CPU).session
        return self._plain

    def _fall_to(self, plain: Any, error: Exception) -> None:
        self._is_optimized = False
        self.opened = Opened(plain, _UNOPTIMIZED.format(error_line(error)))


def open_session(
    model: Path | bytes, options: onnxruntime.SessionOptions, providers: Sequence[Any], **more: Any
) -> Opened:
    """Opens a model with `exact_options`. Where ONNX Runtime cannot compute exactly as nodes share
    a constant, each gets a copy; where that does not help, without being exact. Raises what ONNX
    Runtime raises, which has no common base class."""

    def create(model: Path | bytes) -> Any:
        what = model if isinstance(model, bytes) else str(model)
        return onnxruntime.InferenceSession(what, options, providers=list(providers), **more)

    try:
        return Opened(create(model))
    except Exception:
        # Loads `onnx`, which a process that measures needs for nothing else.
        from tunegate.models.reference.own_constants import with_own_constants  # noqa: PLC0415

        separate = with_own_constants(model)
        if not separate:
            raise
    if isinstance(model, Path):
        options.add_session_config_entry(DATA_FOLDER, str(model.absolute().parent))
    try:
        return Opened(create(separate), _WITH_COPIES)
    except Exception:  # noqa: BLE001 -- whatever it was, the model as it is may still run
        options.add_session_config_entry(_EXACT, "0")
        return Opened(create(model), _INEXACT)


def exact_options() -> onnxruntime.SessionOptions:
    """Returns settings with which int8 sums are exact on every CPU, and with the operators of the
    libraries in use. Without VNNI, ONNX Runtime adds pairs of products in 16 bits by default, and
    they saturate."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(_EXACT, "1")
    for library in _libraries:
        options.register_custom_ops_library(library)
    return options


def timed_options(threads: int) -> onnxruntime.SessionOptions:
    """Returns the settings of a timed session: all optimizations, one inference at a time."""
    options = exact_options()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def quantization() -> Any:
    """Returns the package's own tool, imported on demand: measuring processes do not need it."""
    import onnxruntime.quantization as tool  # noqa: PLC0415

    return tool


def float16_tool() -> Any:
    """Returns the package's own converter, imported on demand: measuring processes do not need
    it."""
    from onnxruntime.transformers import float16  # noqa: PLC0415

    return float16


# An ONNX Runtime error in one line.

_MAX_CHARACTERS = 300
_ONNX_RUNTIME = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Load model from .*? failed: ?)?(.*)", re.DOTALL
)
"""An error it raises: a number, a word, maybe a file of ours, and lines whose last is not the whole
message."""


def error_line(error: Exception) -> str:
    """Returns the message without parts about the library itself: the last line of a traceback, or
    ONNX Runtime's message, without its middle if it is long, as the cause comes last."""
    text = _ONNX_RUNTIME.sub(lambda match: " ".join(match[2].split()), str(error))
    lines = _without_places(text).strip().splitlines() or [type(error).__name__]
    line = lines[-1]
    if len(line) <= _MAX_CHARACTERS:
        return line
    begin, end = line[: _MAX_CHARACTERS // 3], line[-_MAX_CHARACTERS * 2 // 3 :]
    return f"{begin.rpartition(' ')[0] or begin} … {end.partition(' ')[2] or end}"


_SHORT_PLACE = re.compile(r"\b\w+\.(?:cc|h|cpp|hpp):\d+ \w+ |\S*::<lambda\(\)> ")
"""A file with a line and a function, or a function without a name."""
_PLACE = re.compile(r"/\S+\.(?:cc|h|cpp|hpp|cu|cuh):\d+ ")

_TEMPLATE = re.compile(r"^\[with [^\]]*\] ")


def _without_places(text: str) -> str:
    """Returns the message without files, lines and function signatures, which are long and push its
    end off."""
    match = _PLACE.search(text)
    while match is not None:
        depth, end = 0, match.end()
        for end in range(match.end(), len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0 and text[end] == ")":
                break
        else:
            return text[: match.start()] + text[match.end() :]
        rest = _TEMPLATE.sub("", text[end + 1 :].removeprefix(" const").lstrip(), count=1)
        text = text[: match.start()] + rest
        match = _PLACE.search(text)
    return _SHORT_PLACE.sub("", text)
