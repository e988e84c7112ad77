"""Files of the checkout that are not committed: models count as committed, and the configuration
as it is here."""

from __future__ import annotations

from collections.abc import Collection

from tunegate.config import Config
from tunegate.selection import selected


def uncommitted_config(path: str | None, changed: Collection[str]) -> tuple[str, ...]:
    """A line where the configuration, which is read as it is here, is among what `changed`."""
    if path not in changed:
        return ()
    return (f"{path} is read as it is here, with what is not committed",)


def uncommitted_models(config: Config, changed: Collection[str]) -> tuple[str, ...]:
    """A line for each gated model of which something has `changed`."""
    beside = {path.removesuffix(end) for path in changed for end in (".data", ".dvc", "")}
    return tuple(
        f"{model} is not committed as it is here, and only commits count: commit it"
        for model in selected(config, beside)
        if model.endswith(".onnx")
    )
