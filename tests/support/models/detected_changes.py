"""Real repositories with two models, and what a commit changes there."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import onnx

from tests.support.git_repository import Checkout, new_repository
from tests.support.small_onnx import conv_model, matmul_model
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, Revisions
from tunegate.config import Config, ModelConfig
from tunegate.models.reader import GitModelReader
from tunegate.review.detect import detect
from tunegate.system.git.repository import GitRepository

CONFIG = Config(models=(ModelConfig(path="models/**/*.onnx"),))


class CountingReader(GitModelReader):
    """Remembers which models were opened."""

    def __init__(self, repository: GitRepository) -> None:
        super().__init__(repository)
        self.opened_paths: list[str] = []

    def with_digest(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        self.opened_paths.append(version.path)
        return super().with_digest(version)


def project_of(directory: Path) -> Checkout:
    checkout = new_repository(directory / "project")
    checkout.commit(
        {
            "models/conv.onnx": content(conv_model()),
            "models/product.onnx": content(matmul_model()),
            "elsewhere.onnx": content(matmul_model(seed=5)),
        }
    )
    return checkout


def after(
    project: Checkout,
    files: Mapping[str, bytes | None],
    config: Config = CONFIG,
    base_config: Config = CONFIG,
) -> tuple[ChangeSet, list[str]]:
    """Commits these files, and returns the changes and the models that were opened to find them."""
    revisions = Revisions(base=project.git("rev-parse", "HEAD"), head=project.commit(files))
    reader = reader_of(project)
    changes = detect(reader, revisions, config, base_config)
    assert msgspec.json.decode(msgspec.json.encode(changes), type=ChangeSet) == changes
    return changes, reader.opened_paths


def reader_of(project: Checkout) -> CountingReader:
    return CountingReader(GitRepository(project.path))


def kinds(changes: ChangeSet) -> dict[str, str]:
    return {change.path: change.kind for change in changes.models}


def digests(change: ModelChange) -> tuple[str | None, str | None]:
    base, head = change.base, change.head
    return (base.graph_digest if base else None, head.graph_digest if head else None)


def content(model: onnx.ModelProto) -> bytes:
    serialized: bytes = model.SerializeToString()
    return serialized
