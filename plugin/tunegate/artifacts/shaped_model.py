"""A model as it is run: its file, the sizes of its inputs, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tunegate.artifacts.input_rules import InputRule


class ShapedModel(msgspec.Struct, frozen=True):
    """The file of a model, the shapes that its inputs get, and the values that are given for
    them."""

    file: Path
    shapes: Mapping[str, tuple[int, ...]]
    given: Mapping[str, InputRule] = {}
