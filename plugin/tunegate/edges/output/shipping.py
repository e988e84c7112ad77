"""An implementation of `ports.Shipping`: the directories of builds on disk."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tunegate.digests import digest_of
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.output.built_artifact import check_unchanged
from tunegate.errors import OutputError
from tunegate.ports import Shipping


class BuildDirectories:
    def keep(self, chosen: Path, others: Sequence[Path], at: Path) -> str:
        try:
            for other in others:
                shutil.rmtree(other, ignore_errors=True)
            if chosen != at:
                shutil.rmtree(at, ignore_errors=True)
                chosen.replace(at)
        except OSError as error:
            message = f"{at}: cannot be written ({error.strerror}). Choose another with --out."
            raise OutputError(message) from error
        return digest_of(ArtifactFile.read(at))

    def check(self, at: Path, digest: str) -> None:
        check_unchanged(at, digest)


_: type[Shipping] = BuildDirectories
