from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.host_files import dotenv, write_host_file, write_host_json
from tunegate.errors import OutputError


def test_a_file_has_a_name_that_the_next_run_removes(tmp_path: Path) -> None:
    write_host_file(tmp_path, "summary.md", "é")
    assert (tmp_path / "ci-summary.md").read_text("utf-8") == "é"
    write_host_json(tmp_path, "outputs.json", {"a": "é"})
    assert json.loads((tmp_path / "ci-outputs.json").read_text("utf-8")) == {"a": "é"}


def test_no_link_is_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "ci-x").symlink_to(precious)
    write_host_file(tmp_path, "x", "ours")
    assert precious.read_text() == "precious"


def test_a_directory_that_is_gone_is_an_error_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_host_file(tmp_path / "file", "x", "")


@given(st.dictionaries(st.sampled_from("abc"), st.text(max_size=30)))
def test_every_line_is_one_variable_of_ours_whatever_its_value_was(values: dict[str, str]) -> None:
    for line in dotenv(values, limit_bytes=1000).split("\n")[:-1]:
        name, _, value = line.partition("=")
        assert values[name.removeprefix("TUNEGATE_").lower()] == value
        assert not set(value) & set("\"'$`# ")


def test_what_does_not_fit_is_left_out() -> None:
    values = {"a": "x" * 50, "b": "y" * 500, "c": "z"}
    assert dotenv(values, limit_bytes=100) == f"TUNEGATE_A={'x' * 50}\nTUNEGATE_C=z\n"
