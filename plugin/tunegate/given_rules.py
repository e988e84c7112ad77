"""Rules for the inputs of a model, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate.artifacts.input_rules import InputRule
from tunegate.config import ValuesConfig


class GivenFor(msgspec.Struct, frozen=True, kw_only=True):
    """The given values and shapes of one side's inputs. Files are looked for at `revisions`, the
    one that counts first; `former` are names that inputs had there, where these are others."""

    values: Mapping[str, ValuesConfig]
    shapes: Mapping[str, tuple[int, ...]]
    revisions: tuple[str, ...]
    former: Mapping[str, str] = {}


class GivenRules(msgspec.Struct, frozen=True):
    """The rules that follow, and what is wrong, a line each without the model's name."""

    rules: Mapping[str, InputRule]
    problems: tuple[str, ...]
