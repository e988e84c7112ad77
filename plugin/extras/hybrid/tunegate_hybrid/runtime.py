"""Parts of a model compiled by TVM, the others under ONNX Runtime, in one process."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from tunegate.config import TargetConfig
from tunegate.runtimes.runtime import ExtendedCompiler, ExtendingRuntime, Loaded, OpenCompiler
from tunegate.system.machine.packages import installed_version
from tunegate.system.output.artifact_file import ArtifactFile


class Hybrid:
    name, title = "hybrid", "TVM and ONNX Runtime"
    searcher = "tunegate_hybrid.searcher"

    def unsupported(self, target: TargetConfig) -> str:
        return "" if target.kind == "llvm" else "is for CPUs"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}}

    def versions(self) -> Mapping[str, str]:
        from tunegate.models.reference.part_session import reference_version  # noqa: PLC0415
        from tunegate.runtimes.tvm.health import PINNED  # noqa: PLC0415

        return {**{name: installed_version(name) for name in PINNED}, **reference_version()}

    def extended(
        self,
        compiler: OpenCompiler,
        targets: Collection[str],
        scratch: Path,
        *,
        seed: int,
        limit_seconds: float,
    ) -> ExtendedCompiler:
        from tunegate_hybrid.compiler import PartsCompiler  # noqa: PLC0415

        return PartsCompiler(compiler, targets, scratch, seed=seed, limit_seconds=limit_seconds)

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.compiler.runtime_alone import BRIEF_WAITS, import_runtime, set_threads  # noqa: PLC0415

        set_threads(artifact.threads)
        os.environ.update(BRIEF_WAITS)
        import_runtime()
        from tunegate_hybrid.loader import HybridArtifact  # noqa: PLC0415

        return HybridArtifact(directory, artifact)


RUNTIME: ExtendingRuntime = Hybrid()
