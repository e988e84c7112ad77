"""Messages between the coordinator and the child that checks a compiled model."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import NumericCheck, SampledErrors, WrongKernel
from tunegate.tune.compiler_protocol import BuildModel, Built
from tunegate.tune.protocol import Failed


class CheckArtifact(msgspec.Struct, frozen=True, tag="check", kw_only=True):
    """`reference` is the ONNX file that ONNX Runtime runs; `kind` is the target's; `seeds` make the
    inputs. With `samples` those of these seeds tell how far a build in other numbers is off, and
    nothing is checked; what both computed is kept in the directory `cases`, if there is one."""

    directory: str
    reference: str
    kind: str
    seeds: tuple[int, ...]
    samples: tuple[int, ...] = ()
    cases: str = ""


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """`check` is None where this machine has no device to run it on."""

    check: NumericCheck | None = None
    sampled: SampledErrors | None = None


class MendBuild(msgspec.Struct, frozen=True, tag="mend", kw_only=True):
    """A request to find the kernels of the last build that fail its check, and to build it again
    without their schedules, within the time."""

    build: BuildModel
    check: CheckArtifact
    limit_seconds: float


class Mended(msgspec.Struct, frozen=True, tag="mended", kw_only=True):
    """`built` is the build with default schedules for the `wrong` kernels, and `check` what it
    passed. Without them `reason` says why there is none; `is_late` that time was the reason."""

    built: Built | None = None
    check: NumericCheck | None = None
    wrong: tuple[WrongKernel, ...] = ()
    reason: str = ""
    is_late: bool = False


CheckReply = Checked | Mended | Failed
