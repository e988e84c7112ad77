"""The component of GitLab by GitLab's own schema, and by its page."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tests.house.sources import ROOT
from tunegate.settings import CommentWhen

COMPONENT = ROOT / "templates" / "gate.yml"
PAGE = ROOT / "docs" / "how-to" / "gitlab.md"
CHECK = str(Path(sys.executable).parent / "check-jsonschema")


def header_and_body() -> tuple[str, str]:
    header, _, body = COMPONENT.read_text().partition("\n---\n")
    return header, body


def inputs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(header_and_body()[0])["spec"]["inputs"]
    return found


def interpolated(given: dict[str, object]) -> str:
    """The body as GitLab reads it with these inputs and the defaults of the others."""
    values = {name: given.get(name, spec.get("default")) for name, spec in inputs().items()}
    return re.sub(
        r"\$\[\[ inputs\.([\w-]+) \]\]",
        lambda found: text_of(values[found[1]]),
        header_and_body()[1],
    )


def text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("inconclusive", ["warn", "fail"])
@pytest.mark.parametrize("oidc", [True, False])
def test_the_component_fits_gitlabs_schema(tmp_path: Path, inconclusive: str, oidc: bool) -> None:
    given = {"tags": ["gpu"], "inconclusive": inconclusive, "oidc": oidc}
    files = [tmp_path / "header.yml", tmp_path / "body.yml"]
    for file, text in zip(files, (header_and_body()[0], interpolated(given)), strict=True):
        file.write_text(text)
    command = [CHECK, "--builtin-schema", "vendor.gitlab-ci", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_a_merge_request_is_interrupted() -> None:
    jobs = yaml.safe_load(interpolated({"tags": ["gpu"]}))
    request, main = jobs["tunegate"]["rules"]
    assert jobs["tunegate"]["interruptible"] is False
    assert request == {"if": '$CI_PIPELINE_SOURCE == "merge_request_event"', "interruptible": True}
    assert "interruptible" not in main


def test_every_input_is_used_and_told() -> None:
    body, page = header_and_body()[1], PAGE.read_text()
    assert set(inputs()) == set(re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", body))
    assert [name for name in inputs() if f"`{name}`" not in page] == []


def test_the_ways_to_comment_are_those_of_the_command_line() -> None:
    assert set(inputs()["comment"]["options"]) == set(get_args(CommentWhen))
