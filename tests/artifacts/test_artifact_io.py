import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of, document_of
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.handlers.reporting import write_json
from tunegate.errors import ArtifactError, OutputError

VERDICT = parts.verdict("fail", 1, parts.finding("fail", "slow"))


def edited(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_an_artifact_survives_its_file(tmp_path: Path) -> None:
    artifact_io.write(tmp_path / "verdict.json", VERDICT)
    assert artifact_io.read(tmp_path / "verdict.json", Verdict) == VERDICT


def test_another_layout_is_the_same_artifact(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    artifact_io.write(path, VERDICT)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert artifact_io.read(path, Verdict) == VERDICT


@pytest.mark.parametrize(
    "fields", [{"status": "pass"}, {"margin_percent": 3.5}, {"digest": ""}, {"unknown": 1}]
)
def test_an_edited_file_is_no_artifact(fields: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    artifact_io.write(path, VERDICT)
    edited(path, **fields)
    with pytest.raises(ArtifactError, match=r"verdict\.json: not as tunegate wrote it"):
        artifact_io.read(path, Verdict)


def test_a_file_without_a_digest_is_no_artifact(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    artifact_io.write(path, VERDICT)
    document = json.loads(path.read_text())
    del document["digest"]
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="not as tunegate wrote it"):
        artifact_io.read(path, Verdict)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"schema": 2}', b'{"status": "\xe1"}', b'{"a":' + b"[" * 100_000]
)
def test_something_else_is_one_line(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_bytes(body)
    with pytest.raises(ArtifactError, match="not a Verdict this version reads"):
        artifact_io.read(tmp_path / "verdict.json", Verdict)


def test_a_directory_in_its_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").mkdir()
    with pytest.raises(ArtifactError, match=r"verdict\.json"):
        artifact_io.read(tmp_path / "verdict.json", Verdict)
    with pytest.raises(OutputError, match="cannot be written"):
        artifact_io.write(tmp_path / "verdict.json", VERDICT)


def test_what_is_sent_to_a_file_is_read_like_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(VERDICT)
    (tmp_path / "verdict.json").write_text(capsys.readouterr().out)
    assert artifact_io.read(tmp_path / "verdict.json", Verdict) == VERDICT


class Sample(msgspec.Struct, frozen=True):
    seconds: float
    names: tuple[str, ...] = ()
    parts: dict[str, float] = {}


SAMPLES = st.builds(
    Sample,
    seconds=st.one_of(st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False)),
    names=st.lists(st.text()).map(tuple),
    parts=st.dictionaries(st.text(), st.integers(-9, 9)),
)


@given(SAMPLES)
def test_what_went_through_a_file_has_the_same_digest(sample: Sample) -> None:
    read = msgspec.json.decode(msgspec.json.encode(sample), type=Sample)
    assert digest_of(read) == digest_of(sample)


@given(SAMPLES, SAMPLES)
def test_other_contents_have_other_digests(one: Sample, other: Sample) -> None:
    assert (digest_of(one) == digest_of(other)) == (document_of(one) == document_of(other))


def test_the_order_of_keys_does_not_count() -> None:
    one = Sample(1.0, parts={"a": 1.0, "b": 2.0})
    assert digest_of(one) == digest_of(Sample(1.0, parts={"b": 2.0, "a": 1.0}))


def test_an_infinity_has_a_digest_too() -> None:
    assert digest_of(Sample(float("inf"))) != digest_of(Sample(1.0))
