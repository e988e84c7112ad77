"""Finds the configured models that a change touches, and how. In doubt it checks more, and says
why."""

import posixpath
import shlex
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from tunegate.artifacts.changes import (
    ChangeSet,
    LayerChange,
    ModelChange,
    ModelPath,
    ModelVersion,
    PolicyChange,
    Revisions,
    path_of,
)
from tunegate.config import Config
from tunegate.errors import ConfigKey, config_error
from tunegate.ports import ModelReader
from tunegate.review import model_settings
from tunegate.review.compared_work import (
    CHOOSING,
    SEEDED,
    AskedWork,
    inputs_change,
    operators_change,
)
from tunegate.review.effective_config import in_report_order
from tunegate.review.gate_rules import judged_by
from tunegate.review.globs import matches, may_match_below, uncompared_versions, unmatched_paths
from tunegate.review.pair_models import Pairs, pair_models
from tunegate.upgrades import NOTHING_WATCHED, WatchedLocks

Change = Literal["weights-only", "structural", "config", "unknown"]
Versions = tuple[ModelVersion | None, ModelVersion | None]
"""A model in base and head."""
_SHOWN = 3
MAX_GATES = 64
"""The most profiles times targets of a model that a change may ask for, if its base does not."""
MAX_NEW_MODELS = 1000
"""The most models that a change may add to those of its base. A few trees can name millions."""
_Found = Mapping[ModelPath, ModelVersion]


def detect(
    reader: ModelReader,
    revisions: Revisions,
    config: Config,
    base_config: Config | None,
    *,
    as_written: Config | None = None,
    config_name: str = "tunegate.yaml",
    locks: WatchedLocks = NOTHING_WATCHED,
) -> ChangeSet:
    """Returns the changed models, or all models if one of the watched `locks` changed.

    Only models whose bytes, or possible data files, differ are opened. `config` is the head's as
    after a merge, and `as_written` the one in its file, which fits the models of a branch that is
    behind; `base_config` is None without one. The base decides what is asked of models that it
    covers.
    Raises ConfigError, naming the configuration, for globs without a match on either side, for
    wrong sizes and for too many gates of one model.
    """
    # The models of both sides. Each glob must match some: a mistyped one would gate nothing,
    # unnoticed. And what runs must have sizes.
    head = {**reader.models(revisions.head)}
    base = {} if revisions.base is None else {**reader.models(revisions.base)}
    _add_unlisted(reader, revisions, base, head)
    own = as_written or config
    _check_globs(own, config_name, [*head, *base], sorted(reader.submodules(revisions.head)))
    _check_number((config, base_config or config), base, head, config_name)
    if problems := model_settings.shape_problems(reader, config, base_config, own, head):
        raise config_error(
            [f"{config_name}: {problem}" for problem in problems], ConfigKey(config_name)
        )
    # Each model of the head finds its model of the base by the base's rules: no rename hides one.
    old = base_config or config
    pairs = pair_models(
        reader,
        base,
        head,
        {*model_settings.matching_paths(old, base)},
        revisions.head,
        version_of=lambda path: model_settings.numbered_for(old, path),
    )
    unread = reader.unread_outputs(revisions.base, revisions.head)
    pairs = _without_unread(pairs, unread)
    # The configuration that judges, and by it the change of each covered model in each profile.
    judging = judged_by(
        base_config,
        config,
        head,
        pairs.before,
        reader,
        is_merged=revisions.judged_by is None,
    )
    covered_paths = model_settings.matching_paths(judging.config, head)
    _check_gates(judging.config, base_config, covered_paths, pairs.before, config_name)
    work = AskedWork(reader, judging.config, base_config or judging.config)
    change_of = {
        name: _as_moved(_change(work, name, head[path], pairs.before.get(path)), path, pairs)
        for path in covered_paths
        for name in model_settings.profiles_for(judging.config, path)
    }
    # What is no change of a model's file counts too: a model that is gone, packages that run all of
    # them, rules that the change loosens, and work that is no longer the same.
    changes = [change for change in change_of.values() if change is not None]
    changes += _removed_models(pairs, base, old)
    changes += locks.models(judging.config, {path: head[path] for path in covered_paths})
    lost_models = pairs.lost if base_config is not None else ()
    rule_changes = (*map(_no_longer_covered, lost_models), *locks.loosened_rules)
    changes = [_with_layers(reader, change) for change in changes]
    other_work = (*_of_other_work(reader, changes), *work.replaced_values(revisions, change_of))
    return ChangeSet(
        revisions=revisions,
        models=tuple(changes),
        unchanged=tuple(path for path, change in change_of.items() if change is None),
        notes=(
            *_notes(revisions, base_config, locks),
            *_versions(changes, pairs, base, old),
            *_twins(covered_paths, head, base),
            *_unread_outputs(unread, judging.config),
            *moved_submodules(reader, revisions),
        ),
        policy_changes=in_report_order([*rule_changes, *other_work, *judging.changes]),
        uncovered=tuple(sorted(set(head) - set(covered_paths))),
    )


def _check_number(configs: Sequence[Config], base: _Found, head: _Found, config_name: str) -> None:
    """Raises ConfigError for more new models than any run could gate, before one is opened. A
    change may move any number. Without a base, all are new."""
    new = head.keys() - base.keys()
    covered = {path for each in configs for path in model_settings.matching_paths(each, new)}
    more = len(covered) - len(base.keys() - head.keys())
    if base and more > MAX_NEW_MODELS:
        problem = (
            f"{config_name}: models: {more:,} new models, such as {min(covered)}; a change may add "
            f"at most {MAX_NEW_MODELS:,}. Add them in several changes, or narrow the paths"
        )
        raise config_error([problem], ConfigKey(config_name))


def _check_gates(
    judging: Config,
    base_config: Config | None,
    covered_paths: Collection[ModelPath],
    before: Mapping[ModelPath, ModelVersion],
    config_name: str,
) -> None:
    """Raises ConfigError for a model that would be gated more often than a pull request may ask: a
    few lines of profiles and targets would keep a runner for days. What the base asks is asked."""
    for path in covered_paths:
        old = before.get(path)
        usual = _gates_of(base_config, old.path) if base_config is not None and old else 0
        gates = _gates_of(judging, path)
        if gates > max(usual, MAX_GATES):
            profiles = len(model_settings.profiles_for(judging, path))
            problem = (
                f"{config_name}: {path} has {profiles:,} profiles on {gates // profiles:,} "
                f"targets; a change may ask for at most {MAX_GATES} gates of a model. Leave some "
                "out, or name its targets in its entry of models"
            )
            raise config_error([problem], ConfigKey(config_name))


def _gates_of(config: Config, path: ModelPath) -> int:
    """Returns the number of a model's profiles times its targets."""
    profiles = model_settings.profiles_for(config, path)
    return len(profiles) * len(model_settings.targets_for(config, path))


def _add_unlisted(
    reader: ModelReader,
    revisions: Revisions,
    base: dict[ModelPath, ModelVersion],
    head: dict[ModelPath, ModelVersion],
) -> None:
    """Adds the models of a directory that only one side can list to the other side, where reading
    them says why it cannot: they are neither new nor deleted."""
    for revision, versions, other in ((revisions.base, base, head), (revisions.head, head, base)):
        if revision is None:
            continue
        for path in other.keys() - versions.keys():
            version = reader.unlisted_version(revision, path)
            if version is not None:
                versions[path] = version


def _without_unread(pairs: Pairs, unread: Mapping[str, str]) -> Pairs:
    """Returns the pairs without losses that may be none: DVC may keep the model by what changed and
    is not read. That holds too where an earlier version would be compared with it."""
    missing = [*pairs.lost, *(was for was in pairs.earlier.values() if was not in pairs.before)]
    dvc_places = {path: next(_places_of(path, unread), "") for path in missing}
    obstacles = {
        path: f"it may be what {place} keeps" for path, place in dvc_places.items() if place
    }
    rest = tuple(path for path in pairs.lost if path not in obstacles)
    return msgspec.structs.replace(pairs, lost=rest, blocked={**pairs.blocked, **obstacles})


def _places_of(path: ModelPath, unread: Mapping[str, str]) -> Iterator[str]:
    for output, what in sorted(unread.items()):
        place = output.rpartition(": ")[2]
        if _is_of_a_pipeline(output) or place in {path, *map(str, PurePosixPath(path).parents)}:
            yield f"{output} ({what})"


def _is_of_a_pipeline(output: str) -> bool:
    return posixpath.basename(output.partition(": ")[0]) == "dvc.lock"


def _removed_models(pairs: Pairs, base: _Found, config: Config) -> Iterator[ModelChange]:
    """Returns the models of the base that the head no longer has."""
    for path, what in pairs.blocked.items():
        yield _unreadable(path, base[path], config, _no_model(what))
    for path in pairs.lost:
        targets = model_settings.targets_for(config, path)
        yield _build_change("deleted", path, (base[path], None), targets, "not in the head")


def _change(
    work: AskedWork, name: ModelPath, after: ModelVersion, before: ModelVersion | None
) -> ModelChange | None:
    """Returns the change of a model in the profile that `name` tells."""
    if after.storage == "link" and (before is None or before.contents != after.contents):
        link = _no_model(f"{after.path} is a symbolic link")
        return _unreadable(name, before, work.config, link)
    if before is None:
        return _added_model(work, name, after, "new in the head")
    former = work.former_name(name, after, before)
    if former is None:
        return _added_model(work, name, after, "a new profile of the model")
    return _between(work, name, former, (before, after))


def _between(
    work: AskedWork,
    name: ModelPath,
    former: ModelPath,
    versions: tuple[ModelVersion, ModelVersion],
) -> ModelChange | None:
    before, after = versions
    targets = model_settings.targets_for(work.config, name)
    old, new, problem = _looked_into(work.reader, before, after)
    if old.contents != new.contents:
        if what := _no_file(new):
            return _unreadable(name, before, work.config, _no_model(what))
        if new.graph_digest == "":
            return _unreadable(name, before, work.config, _no_onnx(problem))
        change, reason = _compare(old, new, problem)
        return _build_change("modified", name, (old, new), targets, reason, change=change)
    if work.is_changed(name, former, after):
        reason = "its inputs, targets or accuracy changed in the configuration"
        return _build_change("modified", name, (old, new), targets, reason, change="config")
    words = f"renamed from {before.path}, same content"
    same = before.path == after.path
    return None if same else _build_change("renamed", name, (old, new), targets, words)


def _added_model(work: AskedWork, name: ModelPath, after: ModelVersion, reason: str) -> ModelChange:
    head, problem = work.reader.with_digest(after)
    if what := _no_file(head):
        return _unreadable(name, None, work.config, _no_model(what))
    if head.graph_digest == "":
        return _unreadable(name, None, work.config, _no_onnx(problem))
    return _build_change(
        "added", name, (None, head), model_settings.targets_for(work.config, name), reason
    )


def _no_file(version: ModelVersion) -> str:
    """Returns why a data file is not a file, '' if all are."""
    words = {"link": "a symbolic link", "submodule": "a submodule"}
    kinds = {file.path: file.digest.partition(":")[0] for file in version.external}
    odd = [
        f"its data file {path} is {words[kind]}" for path, kind in kinds.items() if kind in words
    ]
    return next(iter(odd), "")


def _looked_into(
    reader: ModelReader, before: ModelVersion, after: ModelVersion
) -> tuple[ModelVersion, ModelVersion, str]:
    """Returns both versions, with their digests if they may differ, and their problems. They may
    still be equal: the file that changed beside them was not their data."""
    if before.contents == after.contents:
        return before, after, ""
    if before.content_digest == after.content_digest:
        (old, old_problem), (new, new_problem) = map(reader.with_data_files, (before, after))
        if not (old_problem or new_problem) and old.contents == new.contents:
            return old, new, ""
    old, old_problem = reader.with_digest(before)
    new, new_problem = reader.with_digest(after)
    return old, new, new_problem or old_problem


def _compare(old: ModelVersion, new: ModelVersion, problem: str) -> tuple[Change, str]:
    if not old.graph_digest or not new.graph_digest:
        return "unknown", f"treated as a change of structure: {problem}"
    if old.graph_digest == new.graph_digest:
        return "weights-only", "the graph is the same, its weights are not"
    return "structural", "the graph changed, or a number that decides its shapes or counts"


def _unreadable(
    path: ModelPath, before: ModelVersion | None, config: Config, reason: str
) -> ModelChange:
    """Returns the change into what no runtime reads: an error before anything is built for it, for
    nobody can say that it got no slower."""
    targets = model_settings.targets_for(config, path)
    return _build_change("unreadable", path, (before, None), targets, reason)


def _no_model(problem: str) -> str:
    return f"{problem} in the head, so the model cannot be checked: commit it as a file"


def _no_onnx(problem: str) -> str:
    return f"{problem}, in the head: the model cannot be checked. Export it again"


def _build_change(
    kind: Literal["added", "modified", "renamed", "deleted", "unreadable"],
    path: ModelPath,
    sides: Versions,
    targets: tuple[str, ...],
    reason: str,
    *,
    change: Change | None = None,
) -> ModelChange:
    base, head = sides
    return ModelChange(
        path=path,
        kind=kind,
        change=change,
        base=base,
        head=head,
        targets=targets,
        reason=reason,
    )


def _of_other_work(reader: ModelReader, changes: Sequence[ModelChange]) -> Iterator[PolicyChange]:
    """Yields policy changes for different work: a model of another batch is faster and does less,
    and one that counts its inferences can hide slow ones. Profiles of a model share the change."""
    other = {path_of(each.path): each for each in changes if each.change == "structural"}
    for change in other.values():
        if change.base is None or change.head is None:
            continue
        before, after = reader.outline(change.base), reader.outline(change.head)
        if before is None or after is None:
            continue
        path = path_of(change.path)
        changes_or_none = (
            inputs_change(path, before.inputs, after.inputs),
            operators_change(SEEDED, path, before.seeded, after.seeded),
            operators_change(CHOOSING, path, before.choosing, after.choosing),
        )
        yield from (each for each in changes_or_none if each is not None)


_MAX_LAYERS = 10
"""The most layers whose changes the report lists."""


def _with_layers(reader: ModelReader, change: ModelChange) -> ModelChange:
    """Returns the change with its changed layers, a reviewer's first question."""
    if change.change != "structural" or change.base is None or change.head is None:
        return change
    before, after = reader.outline(change.base), reader.outline(change.head)
    if before is None or after is None:
        return change
    layers = changed_layers(before.layers, after.layers)
    more = max(0, len(layers) - _MAX_LAYERS)
    return msgspec.structs.replace(change, layers=layers[:_MAX_LAYERS], more_layers=more)


def _as_moved(change: ModelChange | None, path: ModelPath, pairs: Pairs) -> ModelChange | None:
    if change is None or change.kind == "unreadable":
        return change
    if path in pairs.earlier:
        beside = _version_compared_with(path, pairs)
    elif was := pairs.moved.get(path):
        beside = f"compared with {was}, which it replaces"
    else:
        return change
    return msgspec.structs.replace(change, reason=f"{change.reason}; {beside}")


def _versions(
    changes: Sequence[ModelChange], pairs: Pairs, base: _Found, config: Config
) -> Iterator[str]:
    """Yields notes on new models that are or may be versions of others, and on deleted ones."""
    for path in dict.fromkeys(path_of(change.path) for change in changes):
        if path in pairs.earlier:
            yield f"{path} is {_version_compared_with(path, pairs)}"
    covered_paths = {*model_settings.matching_paths(config, base)}
    new_paths = {path_of(change.path) for change in changes if change.kind == "added"}
    missing = {*pairs.lost}
    versions = {
        path
        for path in new_paths | missing
        if model_settings.numbered_for(config, path) is not None
    }
    head = {path for path in pairs.before if path in base} - missing
    yield from uncompared_versions(new_paths - versions, missing - versions, covered_paths, head)


def _version_compared_with(path: ModelPath, pairs: Pairs) -> str:
    was = pairs.earlier[path]
    which = "highest" if was in pairs.highest else "nearest"
    return f"compared with {was}, the {which} version in the base"


def _no_longer_covered(path: ModelPath) -> PolicyChange:
    return PolicyChange(
        key="models", old="gated", new="deleted", effect="loosened", counts="now", model=path
    )


def _twins(covered_paths: Collection[ModelPath], head: _Found, base: _Found) -> Iterator[str]:
    """Yields a line for each covered model that a checkout on another system takes for one with
    another new one."""
    by_name: dict[str, list[ModelPath]] = {}
    for path in sorted(head):
        by_name.setdefault(unicodedata.normalize("NFC", path).casefold(), []).append(path)
    ours = {*covered_paths}
    for paths in by_name.values():
        if len(paths) > 1 and ours & {*paths} and not {*paths} <= base.keys():
            are_cased = len({path.casefold() for path in paths}) < len(paths)
            why = (
                "does not tell upper from lower case, such as macOS or Windows"
                if are_cased
                else "does not tell one encoding of an accented letter from another, such as macOS"
            )
            twins = " and ".join(paths if are_cased else [ascii(path) for path in paths])
            yield (
                f"{twins} are one file on a system that {why}: a checkout there has either. "
                "Rename one"
            )


def _unread_outputs(unread: Mapping[str, str], config: Config) -> Iterator[str]:
    """Yields a line for each changed DVC output that may hold a configured model and is not
    read."""
    globs = [entry.path for entry in config.models]
    for path, what in sorted(unread.items()):
        place = path.rpartition(": ")[2]
        if _is_of_a_pipeline(path) or any(
            matches(glob, place) or may_match_below(glob, place) for glob in globs
        ):
            yield (
                f"{path} ({what}) changed and is not read, so models in it are not checked: run "
                "dvc pull before, or keep each model by itself, with dvc add MODEL.onnx or as an "
                "output of a stage"
            )


def _check_globs(
    config: Config, config_name: str, paths: Sequence[ModelPath], submodules: Sequence[str]
) -> None:
    elsewhere = (
        f" Submodules are repositories of their own ({', '.join(submodules[:_SHOWN])}): gate one "
        f"with --repository."
    )
    problems = [
        f"{config_name}: models: {unmatched_path}{elsewhere * bool(submodules)}"
        for unmatched_path in unmatched_paths(config, paths, "the revision")
    ]
    if problems:
        raise config_error(problems)


def _notes(
    revisions: Revisions, base_config: Config | None, locks: WatchedLocks
) -> tuple[str, ...]:
    if revisions.base is None:
        return (f"no base to compare with ({revisions.reason}): every model counts as added",)
    if base_config is None:
        note = "the base has no configuration that can be read: the head's judges this change"
        return (note, *locks.notes)
    return locks.notes


# Submodules that a change moves. Models in them belong to another repository.

_SHOWN_DIGITS = 12


def moved_submodules(reader: ModelReader, revisions: Revisions) -> Iterator[str]:
    """Yields a note for each submodule that is new or at another commit in the head, with how to
    gate models in it."""
    before = {} if revisions.base is None else reader.submodules(revisions.base)
    for path, commit in sorted(reader.submodules(revisions.head).items()):
        old = before.get(path)
        if old == commit:
            continue
        new, where = commit[:_SHOWN_DIGITS], f"--repository {shlex.quote(path)}"
        if old is None:
            what, line = f"is new, at commit {new}", f"{where} --no-base"
        else:
            what = f"is at another commit ({new}, before {old[:_SHOWN_DIGITS]})"
            line = f"{where} --base {old[:_SHOWN_DIGITS]} --head {new}"
        line_start = f"the submodule {path} {what}, and models in it are not checked"
        yield f"{line_start}: gate them with {line}"


# How a change of a graph touches its layers: shapes, attributes and operators before and after.

Facts = Mapping[str, str]
_OPERATOR = "operator"
_NONE = "none"
_Layers = Sequence[tuple[str, Facts]]
_MAX_ALIGNED = 500_000
"""The most pairs of layers that are compared: a second at the worst."""
_MAX_NAME, _MAX_TEXT = 120, 300
"""The most characters of a line. Names and attributes come from a pull request."""


def changed_layers(
    before: Mapping[str, Facts], after: Mapping[str, Facts]
) -> tuple[LayerChange, ...]:
    """Returns a line for each layer that differs. Layers match by name, or by their order where
    fewer differ then: many exporters number them, so a new one renames all that follow."""
    by_name = tuple(_changes(before, after))
    by_order = tuple(_changes_in_order([*before.items()], [*after.items()]))
    return min(filter(None, (by_name, by_order)), key=len, default=())


def _changes_in_order(before: _Layers, after: _Layers) -> Iterator[LayerChange]:
    """Yields the changes between two lists of layers, whatever these are called; none if the lists
    differ in more places than can be aligned."""
    alike = _alike(before, after)
    old, new = before[alike:], after[alike:]
    alike = _alike(old[::-1], new[::-1])
    old, new = old[: len(old) - alike], new[: len(new) - alike]
    if len(old) * len(new) > _MAX_ALIGNED:
        return
    was, now = ([tuple(facts.items()) for _, facts in layers] for layers in (old, new))
    steps = SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    for step, first, last, begin, end in steps:
        if step == "equal":
            continue
        nothing = ("", None)
        pairs = zip_longest(old[first:last], new[begin:end], fillvalue=nothing)
        for (old_name, facts_before), (name, facts) in pairs:
            yield _layer_change(name or old_name, facts_before, facts)


def _alike(layers: _Layers, others: _Layers) -> int:
    """Returns how many layers are the same from the start."""
    pairs = zip(layers, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0][1] == pair[1][1], pairs))


def _changes(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> Iterator[LayerChange]:
    for name in {**after, **before}:
        if before.get(name) != after.get(name):
            yield _layer_change(name, before.get(name), after.get(name))


def _layer_change(name: str, old: Facts | None, new: Facts | None) -> LayerChange:
    """Returns the line on a layer that differs; a side without the layer is None."""
    if old is None or new is None:
        text = f"{'new' if old is None else 'gone'}: {_layer_words(new or old or {})}"
    else:
        text = _difference(old, new)
    return LayerChange(name[:_MAX_NAME], text[:_MAX_TEXT])


def _difference(old: Facts, new: Facts) -> str:
    """Returns a difference such as `Conv: weights 16x3x1x1 → 16x3x5x5, kernel_shape 1,1 → 5,5`."""
    operator = new.get(_OPERATOR, "")
    if old.get(_OPERATOR) != operator:
        operator = f"{old.get(_OPERATOR, _NONE)} → {operator}"
    parts = [
        f"{name} {old.get(name, _NONE)} → {new.get(name, _NONE)}"
        for name in dict.fromkeys((*old, *new))
        if name != _OPERATOR and old.get(name) != new.get(name)
    ]
    return f"{operator}: {', '.join(parts)}" if parts else operator


def _layer_words(facts: Facts) -> str:
    rest = ", ".join(f"{name} {text}" for name, text in facts.items() if name != _OPERATOR)
    operator = facts.get(_OPERATOR, "")
    return f"{operator} ({rest})" if rest else operator
