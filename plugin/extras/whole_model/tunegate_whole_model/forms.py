"""The forms that this extra adds to TVM's: a native object, the same in one launch, and one
persistent kernel for a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tunegate.artifacts.candidates import LAUNCH
from tunegate.compiler.forms import LIBRARY, Form, Linked, LoadedForm, Settings
from tunegate.config import TargetConfig
from tunegate.system.machine.health import HealthCheck
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_whole_model.native.c_compiler import NO_C_COMPILER, c_compiler
from tunegate_whole_model.native.native_object import NATIVE_OBJECT

if TYPE_CHECKING:  # they import the compiler
    from tunegate.compiler.build.build_model import Finished
    from tunegate.compiler.build.functions import ModelFunction
    from tunegate.compiler.targets import ResolvedTarget
    from tunegate.tune.compiler_protocol import BuildModel

_NATIVE: Final = "native"
WHOLE: Final = "whole"
"""One launch runs the whole model."""


class NativeObject:
    """The model as a shared object with a C header."""

    title, file, entry = "a native object", NATIVE_OBJECT, "model_run"

    def variants(self, target: TargetConfig) -> Mapping[str, Settings]:
        return {}

    def makes(self, target: TargetConfig, settings: Settings) -> bool:
        return target.artifact == _NATIVE and LAUNCH not in settings

    def reason_unfit(self) -> str:
        return "" if c_compiler() is not None else NO_C_COMPILER

    def checks(self) -> Iterator[HealthCheck]:
        # Nothing else needs one, so a machine without is not unfit.
        has_one = c_compiler()
        detail = has_one or NO_C_COMPILER
        yield HealthCheck("C compiler", ok=True, detail=detail, is_absent=not has_one)

    def require(self, functions: Sequence[ModelFunction], target: ResolvedTarget) -> None:
        pass

    def link(self, finished: Finished, request: BuildModel) -> Linked:
        from tunegate_whole_model.native.export import link_native  # noqa: PLC0415

        return Linked(link_native(finished, request, is_whole=False))

    def load(self, directory: Path, artifact: ArtifactFile) -> LoadedForm:
        from tunegate_whole_model.native.loader import NativeArtifact  # noqa: PLC0415

        return NativeArtifact(directory, artifact)


class NativeLaunch(NativeObject):
    """A native object whose threads start once per inference."""

    title = "one launch"

    def variants(self, target: TargetConfig) -> Mapping[str, Settings]:
        # One thread has nothing to launch.
        has_launches = target.artifact == _NATIVE and target.threads != 1
        return {WHOLE: {LAUNCH: WHOLE}} if has_launches else {}

    def makes(self, target: TargetConfig, settings: Settings) -> bool:
        return target.artifact == _NATIVE and settings.get(LAUNCH) == WHOLE

    def checks(self) -> Iterator[HealthCheck]:
        yield from ()

    def require(self, functions: Sequence[ModelFunction], target: ResolvedTarget) -> None:
        from tunegate_whole_model.nests.size import require_small  # noqa: PLC0415

        require_small(functions, target)

    def link(self, finished: Finished, request: BuildModel) -> Linked:
        from tunegate_whole_model.native.export import link_native  # noqa: PLC0415

        return Linked(link_native(finished, request, is_whole=True))


class PersistentKernel:
    """A library of TVM's with one kernel, which runs the whole model on a GPU."""

    title, file, entry = "one launch", LIBRARY, "main"

    def variants(self, target: TargetConfig) -> Mapping[str, Settings]:
        return {WHOLE: {LAUNCH: WHOLE}} if target.kind == "cuda" else {}

    def makes(self, target: TargetConfig, settings: Settings) -> bool:
        return target.kind == "cuda" and settings.get(LAUNCH) == WHOLE

    def reason_unfit(self) -> str:
        return ""

    def checks(self) -> Iterator[HealthCheck]:
        yield from ()

    def require(self, functions: Sequence[ModelFunction], target: ResolvedTarget) -> None:
        pass

    def link(self, finished: Finished, request: BuildModel) -> Linked:
        from tunegate_whole_model.persistent.export import link_persistent  # noqa: PLC0415

        return link_persistent(finished, request)

    def load(self, directory: Path, artifact: ArtifactFile) -> LoadedForm:
        raise NotImplementedError  # TVM loads it


NATIVE: Form = NativeObject()
NATIVE_LAUNCH: Form = NativeLaunch()
PERSISTENT: Form = PersistentKernel()
