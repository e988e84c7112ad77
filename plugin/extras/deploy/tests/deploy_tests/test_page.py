"""The page of this extra says what its command can do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml

from tunegate.cli.parse import fields_of, parse
from tunegate_deploy.command import COMMAND
from tunegate_deploy.evidence.statement import PREDICATE_TYPE

PAGE = (Path(__file__).parents[2] / "README.md").read_text()
ROOT = Path(__file__).parents[5]
WORKFLOW = ROOT / "examples" / "attest.yml"


def test_each_option_of_its_own_is_on_the_page() -> None:
    own = [field for field in fields_of(COMMAND.options) if not field.title]
    flags = [flag for field in own for flag in field.flags if flag.startswith("--")]
    assert [flag for flag in flags if flag not in PAGE] == []
    assert "--promote" in flags


def test_the_workflow_signs_what_attest_writes_and_verifies_before_it_deploys() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    (signing,) = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
    assert (signing, jobs["deploy"]["needs"], jobs["attest"]["needs"]) == (
        "attest",
        "attest",
        "gate",
    )
    (signed,) = [each["with"] for each in jobs["attest"]["steps"] if each.get("id") == "sign"]
    assert signed["predicate-type"] == PREDICATE_TYPE
    ran = {
        name: [
            parse(shlex.split(line.partition("-P -m tunegate ")[2])).command.name
            for step in job["steps"]
            for line in step.get("run", "").splitlines()
            if "-m tunegate " in line
        ]
        for name, job in jobs.items()
    }
    assert ran == {"gate": [], "attest": ["attest"], "deploy": ["verify"]}
    installs = re.findall(r"pip.? install (.*(?:\\\n.*)*)", WORKFLOW.read_text())
    assert len(installs) == 2
    for line in installs:
        assert "--require-hashes" in line
        locks = re.findall(r"-r \"\$SOURCES/([^\"]+)\"", line)
        assert [lock for lock in locks if not (ROOT / lock).is_file()] == []
