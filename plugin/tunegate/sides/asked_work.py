"""The demands of base's and head's configurations on one model in one of its profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tunegate.artifacts.changes import ModelPath, ModelVersion, PolicyChange, Revisions
from tunegate.artifacts.model_names import gated_name, profile_of
from tunegate.artifacts.outlines import ModelInput
from tunegate.config import Config
from tunegate.ports import ModelReader
from tunegate.selection import entry_for, needs_of, profiles_for, shapes_for
from tunegate.sides.value_files import replaced_values


class AskedWork(NamedTuple):
    """`config` is what judges, `old_config` the base's. Models are looked into only where the two
    say different things."""

    reader: ModelReader
    config: Config
    old_config: Config

    def replaced_values(
        self, revisions: Revisions, names: Iterable[ModelPath]
    ) -> Iterator[PolicyChange]:
        """Yields the files of values that the change replaces."""
        return replaced_values(self.reader, revisions, self.config, names)

    def former_name(
        self, name: ModelPath, after: ModelVersion, before: ModelVersion
    ) -> ModelPath | None:
        """The name under which the base gates this work: its profile is called the same there, or
        has the same shapes. None for a profile that is new."""
        known = profiles_for(self.old_config, before.path)
        same = gated_name(before.path, profile_of(name))
        if same in known or entry_for(self.old_config, before.path) is None:
            return same
        inputs = self._inputs(after)
        if inputs is None:
            return None
        wanted = shapes_for(self.config, name, inputs).shapes
        alike = (was for was in known if self._shapes_then(was, inputs) == wanted)
        return next(alike, None)

    def is_changed(self, name: ModelPath, former: ModelPath, after: ModelVersion) -> bool:
        """Returns whether other targets, shapes, values or precisions are asked for. The same
        shapes in other words are no change."""
        now, then = needs_of(self.config, name), needs_of(self.old_config, former)
        if now == then or now is None or then is None:
            return now != then
        if (now.targets, now.values, now.accuracy) != (then.targets, then.values, then.accuracy):
            return True
        inputs = self._inputs(after)
        if inputs is None:
            return True
        return shapes_for(self.config, name, inputs).shapes != self._shapes_then(former, inputs)

    def _shapes_then(
        self, name: ModelPath, inputs: Sequence[ModelInput]
    ) -> dict[str, tuple[int, ...]]:
        return shapes_for(self.old_config, name, inputs).shapes

    def _inputs(self, version: ModelVersion) -> Sequence[ModelInput] | None:
        outline = self.reader.outline(version)
        return None if outline is None else outline.inputs
