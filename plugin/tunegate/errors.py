"""Every way a run can fail that we can explain. One exit code per class, all of them here."""

import errno
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

PASS: Final = 0
FAIL: Final = 1
USAGE: Final = 2
INCONCLUSIVE: Final = 3
UNFIT: Final = 4
NO_BASELINE: Final = 5
BUG: Final = 70
CANCELLED: Final = 130


NO_THREAD = "this machine lets no thread start. Raise ulimit -u, or the container's limit."
LIMIT_ADVICE = {
    errno.EAGAIN: "Raise ulimit -u, or the container's limit of processes.",
    errno.EMFILE: "Raise ulimit -n.",
    errno.ENFILE: "The machine has too many files open.",
    errno.EFBIG: "Raise ulimit -f.",
}
"""The way out of a limit of a process, by the error that meets it."""


class TunegateError(Exception):
    """A failure we can explain; its text is shown as it is: what, where, what to do."""

    exit_code: ClassVar[int] = BUG


class ConfigKey(NamedTuple):
    """The part of a configuration's file that is wrong: a key like `targets[0].name`, or a line
    (from 1) where the file is no YAML."""

    file: str
    key: str = ""
    line: int = 0


class ConfigError(TunegateError):
    """`tunegate.yaml` or an argument cannot be used. `others` are further problems, of one line
    each."""

    exit_code = USAGE

    def __init__(
        self, text: str, about: ConfigKey | None = None, other_keys: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.about = about
        self.others = tuple(other_keys)


def config_error(problems: Sequence[str], about: ConfigKey | None = None) -> ConfigError:
    """All of these problems as one error; `about` is the place of the first."""
    first, *others = problems
    return ConfigError(first, about, others)


class RevisionError(TunegateError):
    """A revision or the repository itself cannot be read."""

    exit_code = USAGE


class ModelError(TunegateError):
    """A model cannot be read, checked, imported or given its shapes."""

    exit_code = USAGE


class NoOnnxError(ModelError):
    """A file is no ONNX file, or is cut short: no runtime reads it."""


class UnreadModelError(ModelError):
    """A model that may be valid and is not read: its text says what to change. To export it again
    would help nobody."""


class NotOfferedError(ModelError):
    """A model has no build in the numbers of a candidate, on this machine or at all: its text goes
    on after "does not offer" and the numbers."""


class NotOfferedNowError(NotOfferedError):
    """The cause lies outside of the model: a process that had to decide died. Another run may find
    otherwise."""


class UnsupportedModelError(ModelError):
    """A valid model that the compiler cannot take; another runtime may."""


class OutputError(TunegateError):
    """`--out` cannot be written, or is not ours to write."""

    exit_code = USAGE


class OutputInUseError(TunegateError):
    """Another run works in `--out`."""

    exit_code = UNFIT


class ArtifactError(TunegateError):
    """A file from an earlier step is missing, of another schema, or damaged."""

    exit_code = USAGE


class EnvironmentUnfitError(TunegateError):
    """This machine cannot do the step: no device, no compiler, broken installation."""

    exit_code = UNFIT


class MeasurementError(TunegateError):
    """A measuring process died, hung, or the artifact does not run in it."""

    exit_code = UNFIT


class NoBaselineError(TunegateError):
    """There is nothing to compare with, though there should be."""

    exit_code = NO_BASELINE


class CancelledError(TunegateError):
    """SIGINT, SIGTERM or SIGHUP; what was finished is kept."""

    exit_code = CANCELLED


def was_cancelled(error: BaseException | None) -> bool:
    """Returns whether the exception is a cancel, reported or not, or follows from one: cleaning up
    afterwards may fail, for example on a lost terminal."""
    seen_ids = set()
    while error is not None and id(error) not in seen_ids:
        if isinstance(error, (KeyboardInterrupt, CancelledError)):
            return True
        seen_ids.add(id(error))
        error = error.__cause__ or error.__context__
    return False
