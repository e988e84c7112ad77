"""A model as it is run: its file, and the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class ShapedModel(msgspec.Struct, frozen=True):
    """The file of a model, and the shapes that its inputs get."""

    file: Path
    shapes: Mapping[str, tuple[int, ...]]
