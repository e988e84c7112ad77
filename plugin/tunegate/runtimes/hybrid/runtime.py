"""Parts of a model compiled by TVM, the others under ONNX Runtime, in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tunegate.config import TargetConfig
from tunegate.edges.machine.installed_version import installed_version
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.ports import Builder
from tunegate.runtimes.runtime import Loaded, OpenCompiler, PartsRuntime


class Hybrid:
    name, title = "hybrid", "TVM and ONNX Runtime"

    def unsupported(self, target: TargetConfig) -> str:
        return "" if target.kind == "llvm" else "is for CPUs"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}}

    def versions(self) -> Mapping[str, str]:
        from tunegate.edges.reference.part_session import reference_version  # noqa: PLC0415
        from tunegate.runtimes.tvm.requirements import PINNED  # noqa: PLC0415

        return {**{name: installed_version(name) for name in PINNED}, **reference_version()}

    def builder(self, compiler: OpenCompiler) -> Builder:
        from tunegate.runtimes.hybrid.builder import PartsBuilder  # noqa: PLC0415

        return PartsBuilder(self.name, compiler)

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.edges.metaschedule.runtime_alone import (  # noqa: PLC0415
            BRIEF_WAITS,
            import_runtime,
            set_threads,
        )

        set_threads(artifact.threads)
        os.environ.update(BRIEF_WAITS)
        import_runtime()
        from tunegate.runtimes.hybrid.loader import HybridArtifact  # noqa: PLC0415

        return HybridArtifact(directory, artifact)


RUNTIME: PartsRuntime = Hybrid()
