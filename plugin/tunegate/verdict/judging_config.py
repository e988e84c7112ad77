"""The configuration that judges these models, made of base's and head's."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.artifacts.changes import ChangeSet, ModelPath, ModelVersion
from tunegate.artifacts.model_names import path_of
from tunegate.artifacts.outlines import ModelInput
from tunegate.config import Config
from tunegate.errors import config_error
from tunegate.policy.effective import Effective, effective, of_head_alone
from tunegate.policy.outside_files import newly_outside
from tunegate.ports import ModelReader


def judging_config(
    base: Config | None, head: Config, changes: ChangeSet, reader: ModelReader
) -> Config:
    """The configuration that judges the models of these changes: a later job finds it
    again, whatever it was handed."""
    found = {each.head.path: each.head for each in changes.models if each.head is not None}
    before = {path_of(each.path): each.base for each in changes.models if each.base is not None}
    return judged_by(base, head, found, before, reader).config


def judged_by(
    base: Config | None,
    head: Config,
    found: Mapping[ModelPath, ModelVersion],
    before: Mapping[ModelPath, ModelVersion],
    reader: ModelReader,
) -> Effective:
    """`found` are models of the head, `before` what they were at the base. Without a configuration
    of the base it is the head's, of which no command runs. Raises ConfigError for files on the
    runner that only the head names."""
    if base is None:
        return of_head_alone(head)

    def inputs_of(version: ModelVersion | None) -> tuple[ModelInput, ...] | None:
        outline = None if version is None else reader.outline(version)
        return None if outline is None else outline.inputs

    paths = {path: before[path].path if path in before else path for path in found}
    rules = effective(
        base,
        head,
        paths,
        lambda path: inputs_of(found[path]),
        lambda path: inputs_of(before.get(path)),
    )
    if problems := newly_outside(base, rules.config):
        raise config_error(problems)
    return rules
