"""Which own tasks the searches of a run know."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from tests.plugin.cost_model.test_team_prior import BETTER, TEAM
from tunegate.config import CacheConfig
from tunegate.engine.experience.known_prior import known_prior
from tunegate.errors import RevisionError


class _Told:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.warnings: list[str] = []

    def step(self, text: str, kind: object = None) -> None:
        self.steps.append(text)

    def expect(self, *_: object) -> None:
        """Nothing is paced here."""

    update = expect

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class _Commit:
    """A repository with one file in one commit."""

    def __init__(self, body: bytes | None) -> None:
        self._body = body

    def read(self, revision: str, path: str) -> bytes:
        if (revision, path) != ("base", "p.json") or self._body is None:
            raise RevisionError(f"{path}: not in {revision}, or its content cannot be fetched.")
        return self._body


def known(tmp_path: Path, path: str | None, body: bytes | None) -> tuple[str, _Told]:
    told = _Told()
    return known_prior(CacheConfig(prior=path), _Commit(body), "base", tmp_path, told), told


def test_a_file_that_was_better_is_known_and_told(tmp_path: Path) -> None:
    body = msgspec.json.encode(TEAM)
    file, told = known(tmp_path, "p.json", body)
    assert Path(file).read_bytes() == body
    assert told.steps == [
        "searches know 9 tasks of p.json: 0.75 of what is lost without, on 9 tasks left out"
    ]
    assert not told.warnings


def test_one_that_was_not_better_is_told_and_not_known(tmp_path: Path) -> None:
    worse = replace(TEAM, judged=replace(BETTER, high=1.2))
    file, told = known(tmp_path, "p.json", msgspec.json.encode(worse))
    assert not file
    assert "not shown to be better" in told.warnings[0]
    assert told.warnings[0].endswith("Searches know what comes with this version alone.")


def test_a_file_that_is_not_in_the_commit_is_told(tmp_path: Path) -> None:
    file, told = known(tmp_path, "p.json", None)
    assert not file
    assert told.warnings[0].startswith("cache.prior: p.json: not in base")


def test_without_the_key_nothing_is_read_or_told(tmp_path: Path) -> None:
    file, told = known(tmp_path, None, None)
    assert not file
    assert not told.steps + told.warnings
