"""`tunegate-waivers.yaml`: what may be slower, how much, until when, and why.

The file is read from the checked revision. Protect it by CODEOWNERS: whoever can change it can let
a slowdown pass.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.verdicts import ISSUE_TO_WRITE, REASON_TO_WRITE, WAIVERS_FILE, Waiver
from tunegate.config import Config, GateConfig
from tunegate.errors import ConfigError, ConfigKey, RevisionError, config_error
from tunegate.ports import Repository, Trailer
from tunegate.review.config_problems import key_place, meant_key, unknown_key, value_problem
from tunegate.review.gate_rules import Waivers, merged_waivers, rebased_waivers, stray_waivers
from tunegate.system.strict_yaml import YamlProblemError, read_yaml

MAX_VALIDITY = datetime.timedelta(days=90)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    waivers: tuple[Waiver, ...]


def parse_waivers(text: str, where: str, today: datetime.date) -> tuple[Waiver, ...]:
    """Returns the waivers. Raises ConfigError with every problem: unreadable entries, two waivers
    of one model and target, and terms over 90 days."""
    try:
        content = read_yaml(text) or {"waivers": []}
    except YamlProblemError as error:
        raise ConfigError(f"{where}: {error}", ConfigKey(where, line=error.line)) from error
    problems = file_problems(content)
    if not problems:
        waivers = msgspec.convert(content, _File).waivers
        problems = tuple(_problems(waivers, today))
        if not problems:
            return waivers
    lines = [f"{where}: {' '.join(problem.splitlines())}" for problem in problems]
    raise config_error(lines, ConfigKey(where, "waivers"))


def _problems(waivers: Iterable[Waiver], today: datetime.date) -> Iterator[str]:
    """Yields the problems of readable waivers, one line each."""
    cells: set[Cell] = set()
    for waiver in waivers:
        twice = ("it is waived twice. Keep one.",) if waiver.cell in cells else ()
        cells.add(waiver.cell)
        for problem in (*terms_problems(waiver, today), *twice):
            yield f"{waiver.model} on {waiver.target}: {problem}"


def terms_problems(waiver: Waiver, today: datetime.date) -> Iterator[str]:
    """Yields the problems of a readable waiver's terms."""
    if waiver.expires > today + MAX_VALIDITY:
        latest = today + MAX_VALIDITY
        yield f"expires {waiver.expires} is over 90 days ahead. Write {latest} or earlier."
    if not waiver.ceiling_percent > 0:
        yield "ceiling-percent is how much slower it may be. Write a number above zero."
    if not (_is_readable(waiver.issue) and _is_readable(waiver.reason)):
        yield "issue and reason say why. Fill them in."
    keys = [
        name
        for name, words in (("issue", waiver.issue), ("reason", waiver.reason))
        if words.strip() in {ISSUE_TO_WRITE, REASON_TO_WRITE}
    ]
    if keys:
        have = "has" if len(keys) == 1 else "have"
        yield f"{' and '.join(keys)} still {have} the offer's placeholder. Replace the text in <…>."


def _is_readable(text: str) -> bool:
    """Returns whether there is a character to see: a space of no width is none."""
    return any(character.isprintable() and not character.isspace() for character in text)


# Problems of waivers as written, all at once, for their author.

_KEYS = {field.encode_name: field.type for field in msgspec.structs.fields(Waiver)}
_FILE = {"waivers": list[Any]}
_MAPPING = inspect.type_info(dict[str, Any])


def file_problems(content: Any) -> tuple[str, ...]:
    """Yields one line for each problem of a file."""
    problems = tuple(_of_mapping(content, "", _FILE))
    if problems:
        return problems
    entries = enumerate(content["waivers"])
    problems = tuple(
        line for number, each in entries for line in waiver_problems(each, f"waivers[{number}]")
    )
    return (*problems, f"A waiver has {', '.join(_KEYS)}.") if problems else ()


def waiver_problems(entry: Any, path: str = "") -> tuple[str, ...]:
    """Yields one line for each problem of the waiver at that path."""
    return tuple(_of_mapping(entry, path, _KEYS))


def _of_mapping(content: Any, path: str, keys: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(content, dict):
        yield value_problem(_MAPPING, path, content)
        return
    key_meant = {key: meant_key(str(key), keys) for key in content if key not in keys}
    for key, near in key_meant.items():
        yield unknown_key(key_place(path, str(key)), near)
    for key, kind in keys.items():
        if key in content:
            yield from _of_value(content[key], key_place(path, key), kind)
        elif key not in key_meant.values():
            yield f"{key_place(path, key)} is missing. Add it."


def _of_value(value: Any, path: str, kind: Any) -> Iterator[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        unit = "percent" if path.endswith("-percent") else ""
        yield value_problem(inspect.type_info(kind), path, value, unit)


# `Tunegate-Waiver: {model: ..., target: ..., ceiling-percent: ..., issue: ..., reason: ...}` in a
# commit message waives for the pull request of that commit only. Anyone who can commit can write
# one, so `gate.waiver-trailers` must allow them.

WAIVER_TRAILER = "Tunegate-Waiver"
_FIELDS = "{model: ..., target: ..., ceiling-percent: ..., issue: ..., reason: ...}"


def parse_trailers(trailers: Iterable[Trailer], today: datetime.date) -> tuple[Waiver, ...]:
    """Returns one waiver for each model and target, the newest commit's. Raises ConfigError for an
    unreadable one."""
    by_cell: dict[Cell, Waiver] = {}
    for trailer in trailers:
        waiver = _parse_trailer(trailer, today)
        by_cell.setdefault(waiver.cell, waiver)
    return tuple(by_cell.values())


def _parse_trailer(trailer: Trailer, today: datetime.date) -> Waiver:
    where = f"{WAIVER_TRAILER} of commit {trailer.commit[:12]}"
    try:
        fields = read_yaml(trailer.value)
        if not isinstance(fields, dict) or "expires" in fields:
            raise ConfigError(f"{where}: it holds for its pull request only. Write {_FIELDS}.")
    except YamlProblemError as error:
        raise ConfigError(f"{where}: {error} Write {_FIELDS}.") from error
    entry = {**fields, "expires": today}
    _refuse(where, waiver_problems(entry))
    waiver = msgspec.convert(entry, Waiver)
    problems = terms_problems(waiver, today)
    _refuse(where, [f"{waiver.model} on {waiver.target}: {problem}" for problem in problems])
    return waiver


def _refuse(where: str, problems: Sequence[str]) -> None:
    if problems:
        raise config_error([f"{where}: {' '.join(problem.splitlines())}" for problem in problems])


# The waivers of the compared revisions.


def waivers_of(
    repository: Repository, changes: ChangeSet, config: Config, today: datetime.date
) -> Waivers:
    """Returns the waivers of a change that this configuration judges, with a note on each that
    matches nothing. Raises ConfigError like `read_waivers`."""
    waivers = read_waivers(repository, changes.revisions, config.gate, today)
    models = (*changes.unchanged, *(change.path for change in changes.models))
    every = (*waivers.counting, *waivers.pending)
    entries = repository.files(changes.revisions.head) if every else ()
    files = {each.path.removesuffix(".dvc") for each in entries}
    strays = stray_waivers(every, config, models, files)
    return msgspec.structs.replace(waivers, notes=(*waivers.notes, *strays))


def read_waivers(
    repository: Repository, revisions: Revisions, gate: GateConfig, today: datetime.date
) -> Waivers:
    """Returns the waivers of these revisions. `gate` judges: its `waivers-from` says whose file
    counts, its `waiver-trailers` whether commits between base and head do. Of a commit's waiver and
    the file's the higher ceiling counts; since a release only the file's: the commit's own pull
    request is merged. Raises ConfigError for unreadable waivers of the head. Unreadable ones of the
    base waive nothing and are reported, so that a change can repair them."""
    of_head = _waivers_in_file(repository, revisions.head, today)
    counting = Waivers(counting=of_head)
    if gate.waivers_from == "base" and revisions.judged_by is not None:
        of_base, broken = _filed_before(repository, revisions.judged_by, today)
        if fork := revisions.forked_at:
            of_fork, _ = _filed_before(repository, fork, today)
            of_head = rebased_waivers(of_fork, of_base, of_head)
        of_both = merged_waivers(of_base, of_head, WAIVERS_FILE)
        counting = msgspec.structs.replace(of_both, notes=broken, has_unread=bool(broken))
    if revisions.base is None or revisions.release:
        return counting
    key, do_count = WAIVER_TRAILER, gate.waiver_trailers
    trailers = repository.trailers(revisions.base, revisions.head, key, may_fetch=do_count)
    return _with_trailers(counting, trailers, today, do_count=do_count)


def _with_trailers(
    waivers: Waivers, trailers: Sequence[Trailer], today: datetime.date, *, do_count: bool
) -> Waivers:
    """Adds the waivers of trailers. Where trailers do not count, mistakes in them do not
    matter."""
    try:
        signed = parse_trailers(trailers, today)
    except ConfigError:
        if do_count:
            raise
        return waivers
    if not do_count:
        pending = (*waivers.pending, *signed)
        return msgspec.structs.replace(waivers, pending=pending, signed=signed)
    # Of two for a cell the last counts. An offer needs to know the file's, too.
    by_ceiling = sorted(
        (*waivers.counting, *signed), key=lambda each: (each.expires >= today, each.ceiling_percent)
    )
    return msgspec.structs.replace(waivers, counting=tuple(by_ceiling), signed=signed)


def _filed_before(
    repository: Repository, revision: str, today: datetime.date
) -> tuple[tuple[Waiver, ...], tuple[str, ...]]:
    """Returns the waivers at a revision, with a note if they cannot be read."""
    try:
        return _waivers_in_file(repository, revision, today), ()
    except ConfigError as error:
        return (), (f"nothing is waived: in {revision[:12]}, whose rules judge, {error}",)


def _waivers_in_file(
    repository: Repository, revision: str, today: datetime.date
) -> tuple[Waiver, ...]:
    return parse_waivers(_text(repository, revision), WAIVERS_FILE, today)


def _text(repository: Repository, revision: str) -> str:
    try:
        return repository.read(revision, WAIVERS_FILE).decode() if revision else ""
    except RevisionError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{WAIVERS_FILE}: not UTF-8 ({error}). Save it as text.") from error
