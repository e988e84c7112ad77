from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.support.report_parts import finding, verdict
from tunegate.artifacts import artifact_io
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci.fork_report import MAX_BYTES, fork_verdict
from tunegate.errors import ArtifactError

GOOD = verdict("fail", 1, finding("fail", "slower"))
REPLACE = msgspec.structs.replace
WORD = "approved-by-maintainers"


def written(directory: Path, body: bytes) -> Path:
    (directory / "verdict.json").write_bytes(body)
    return directory


def with_finding(**fields: object) -> Verdict:
    changed: Finding = REPLACE(GOOD.findings[0], **fields)
    return REPLACE(GOOD, findings=(changed,))


def test_a_verdict_that_tunegate_wrote_is_read(tmp_path: Path) -> None:
    artifact_io.write(tmp_path / "verdict.json", GOOD)
    assert fork_verdict(tmp_path) == GOOD


def test_a_run_that_kept_none_has_none(tmp_path: Path) -> None:
    assert fork_verdict(tmp_path) is None
    assert fork_verdict(tmp_path / "missing") is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        f'{{"{WORD}": 1}}'.encode(),
        b'{"schema": 2}',
        b"[" * 500_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        artifact_io.sealed(GOOD).replace(b'"fail"', b'"pass"'),
        artifact_io.sealed(GOOD).replace(b'"exit_code": 1', b'"exit_code": NaN'),
        artifact_io.sealed(GOOD).replace(b'"exit_code": 1', b'"exit_code": 1e999'),
        artifact_io.sealed(GOOD) + b" " * MAX_BYTES,
        b"\xff\xfe" * 10,
    ],
    ids=range(12),
)
def test_other_bytes_are_refused_and_nothing_of_them_is_said(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(ArtifactError) as caught:
        fork_verdict(written(tmp_path, body))
    assert WORD not in str(caught.value)


@pytest.mark.parametrize(
    "hostile",
    [
        with_finding(base_ms=-1.0),
        with_finding(head_ms=1e308),
        with_finding(reference_ms=1e8),
        with_finding(change_percent=Interval(low=-1e308, center=0.0, high=1e308)),
        with_finding(change_percent=Interval(low=3.0, center=2.0, high=1.0)),
        with_finding(model="m" * 5000),
        with_finding(target="t" * 5000),
        REPLACE(GOOD, margin_percent=-1.0),
        REPLACE(GOOD, margin_percent=1e300),
        REPLACE(GOOD, findings=GOOD.findings * 1001),
        REPLACE(GOOD, revisions=REPLACE(GOOD.revisions, head=WORD)),
    ],
    ids=range(11),
)
def test_what_cannot_be_is_refused(tmp_path: Path, hostile: Verdict) -> None:
    with pytest.raises(ArtifactError) as caught:
        fork_verdict(written(tmp_path, artifact_io.sealed(hostile)))
    assert WORD not in str(caught.value)


def test_only_a_plain_file_in_a_directory_of_its_own_is_read(tmp_path: Path) -> None:
    elsewhere = written(tmp_path, artifact_io.sealed(GOOD))
    linked, piped, nested = (tmp_path / name for name in ("linked", "piped", "nested"))
    for directory in (linked, piped, nested):
        directory.mkdir()
    (linked / "verdict.json").symlink_to(elsewhere / "verdict.json")
    os.mkfifo(piped / "verdict.json")
    (nested / "verdict.json").mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    for directory in (linked, piped, nested, tmp_path / "link", elsewhere / "verdict.json"):
        with pytest.raises(ArtifactError, match="of the fork's run"):
            fork_verdict(directory)
