"""A reader that knows of models what can be seen without running them, and nothing else."""

from collections.abc import Mapping

from tunegate.artifacts.changes import ModelInput, ModelOutline, ModelPath, ModelVersion


class Outlines:
    """Models with one input `x` of these dimensions; none can be read where there are none."""

    def __init__(self, *dimensions: int | None, symbols: tuple[str, ...] = ()) -> None:
        self.dimensions, self.symbols = dimensions, symbols

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        if not self.dimensions:
            return None
        inputs = (ModelInput("x", self.dimensions, self.symbols),)
        return ModelOutline(graph_digest=version.content_digest, inputs=inputs, parts={})

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        raise NotImplementedError

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        raise NotImplementedError

    def with_data_files(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        raise NotImplementedError

    def with_digest(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        raise NotImplementedError

    def blob(self, revision: str, path: str) -> str:
        raise NotImplementedError

    def obstacle(self, revision: str, path: ModelPath) -> str:
        raise NotImplementedError

    def unread_outputs(self, base: str | None, head: str) -> Mapping[str, str]:
        return {}

    def unlisted_version(self, revision: str, path: ModelPath) -> ModelVersion | None:
        return None

    def submodules(self, revision: str) -> Mapping[str, str]:
        raise NotImplementedError
