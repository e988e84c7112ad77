"""The work that the configurations of base and head ask of one model in one profile."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tunegate.artifacts import changes
from tunegate.config import Config
from tunegate.ports import ModelReader
from tunegate.review import model_settings
from tunegate.review.named_files import JudgingFile, replacements


class AskedWork(NamedTuple):
    """`config` judges, `old_config` is the base's. Models are opened only if the two differ."""

    reader: ModelReader
    config: Config
    old_config: Config

    def replaced_values(
        self, revisions: changes.Revisions, names: Iterable[changes.ModelPath]
    ) -> Iterator[changes.PolicyChange]:
        """Yields a policy change for each file of values that the change replaces."""
        return replaced_values(self.reader, revisions, self.config, names)

    def former_name(
        self, name: changes.ModelPath, after: changes.ModelVersion, before: changes.ModelVersion
    ) -> changes.ModelPath | None:
        """Returns the name under which the base gates this work: a profile of the same name, or of
        the same shapes. None for a new profile."""
        profiles = model_settings.profiles_for(self.old_config, before.path)
        same = changes.gated_name(before.path, changes.profile_of(name))
        if same in profiles or model_settings.entry_for(self.old_config, before.path) is None:
            return same
        inputs = model_settings.inputs_of(self.reader, after)
        if inputs is None:
            return None
        shapes = model_settings.shapes_for(self.config, name, inputs).shapes
        alike = (was for was in profiles if self._shapes_then(was, inputs) == shapes)
        return next(alike, None)

    def is_changed(
        self, name: changes.ModelPath, former: changes.ModelPath, after: changes.ModelVersion
    ) -> bool:
        """Returns whether other targets, shapes, values or precisions are asked for. The same
        shapes in other words are no change."""
        now = model_settings.needs_of(self.config, name)
        then = model_settings.needs_of(self.old_config, former)
        if now == then or now is None or then is None:
            return now != then
        if (now.targets, now.values, now.accuracy) != (then.targets, then.values, then.accuracy):
            return True
        inputs = model_settings.inputs_of(self.reader, after)
        if inputs is None:
            return True
        shapes = model_settings.shapes_for(self.config, name, inputs).shapes
        return shapes != self._shapes_then(former, inputs)

    def _shapes_then(
        self, name: changes.ModelPath, inputs: Sequence[changes.ModelInput]
    ) -> dict[str, tuple[int, ...]]:
        return model_settings.shapes_for(self.old_config, name, inputs).shapes


# Changes that make base and head different work: other inputs, and operators that do not always do
# the same.

INPUTS_KEY = "inputs of the model"
SEEDED = "random operators with a seed of their own"
"""They are equal in every process, so a model could recognise the gate and be fast only there."""
CHOOSING = "operators that choose their work by numbers of the inputs"
"""The gate draws inputs, and users may send others, for which such a model does more."""


def inputs_change(
    path: changes.ModelPath,
    before: tuple[changes.ModelInput, ...],
    after: tuple[changes.ModelInput, ...],
) -> changes.PolicyChange | None:
    """Returns the change of inputs, None if both take the same inputs in any order."""
    old, new = _inputs_text(before), _inputs_text(after)
    if old == new:
        return None
    return changes.PolicyChange(
        key=INPUTS_KEY, old=old, new=new, effect="changed", counts="now", model=path
    )


def operators_change(
    key: str, path: changes.ModelPath, before: tuple[str, ...], after: tuple[str, ...]
) -> changes.PolicyChange | None:
    """Returns the change to operators of the kind `key`, None if none is new."""
    if Counter(after) <= Counter(before):
        return None
    old, new = map(_count_words, (before, after))
    return changes.PolicyChange(
        key=key, old=old, new=new, effect="changed", counts="now", model=path
    )


def _count_words(kinds: tuple[str, ...]) -> str:
    counts = sorted(Counter(kinds).items())
    return ", ".join(kind if n == 1 else f"{kind} x{n}" for kind, n in counts) or "none"


def _inputs_text(inputs: tuple[changes.ModelInput, ...]) -> str:
    shapes = (
        f"{' '.join(filter(None, (value.name, value.dtype)))} "
        f"[{', '.join('?' if n is None else str(n) for n in value.dimensions)}]"
        for value in sorted(inputs, key=lambda value: value.name)
    )
    return ", ".join(shapes) or "none"


# Files of values that a change replaces. The base's values count, so this is a policy change.


def replaced_values(
    reader: ModelReader,
    revisions: changes.Revisions,
    config: Config,
    names: Iterable[changes.ModelPath],
) -> Iterator[changes.PolicyChange]:
    """Yields a policy change for each replaced file of values of these models."""
    return replacements(_files(config, names), revisions, reader.blob)


def _files(config: Config, names: Iterable[changes.ModelPath]) -> Iterator[JudgingFile]:
    """Yields each file of each model once; profiles may share files."""
    files = {
        (changes.path_of(name), input_name, file.removeprefix("./"))
        for name in names
        for input_name, values in model_settings.values_for(config, name).items()
        for file in values.files
    }
    for model, input_name, file in sorted(files):
        yield JudgingFile(f"models[].inputs.{input_name}.values", file, model)
