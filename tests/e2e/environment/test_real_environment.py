"""The action with no package of these tests: its own environment, from the package index."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from tests.support.git_repository import new_repository
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model
from tests.support.workspace import NOT_COMPILED
from tunegate.cli.supported_machine import NEWEST, OLDEST

BOOTSTRAP = Path(__file__).resolve().parents[3] / "action" / "bootstrap.py"
CONFIG = NOT_COMPILED + "gate:\n  seconds: 10\n"


@pytest.mark.pipelines
@pytest.mark.timeout(900)
def test_a_gate_under_one_runtime_installs_no_compiler_and_judges(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "workspace")
    base = origin.commit({"tunegate.yaml": CONFIG.encode(), "models/m.onnx": model(0)})
    head = origin.commit({"models/m.onnx": model(1)})
    first, cold_seconds = ended(tmp_path, base, head)
    assert "run-onnxruntime.lock" in first
    assert "by uv (" in first
    _, warm_seconds = ended(tmp_path, base, head)
    (environment,) = (tmp_path / "tools" / "tunegate" / "env").glob("*/lib/*/site-packages")
    assert (environment / "onnxruntime").is_dir()
    assert not (environment / "tvm").exists()
    print(f"cold {cold_seconds:.1f} s, warm {warm_seconds:.1f} s")


def ended(directory: Path, base: str, head: str) -> tuple[str, float]:
    """Runs the action, and returns its log and the seconds until it worked in its environment."""
    pushed = {"ref": "refs/heads/main", "before": base, "after": head}
    repository = {"default_branch": "main", "full_name": "acme/models"}
    event = directory / "event.json"
    event.write_text(json.dumps({**pushed, "repository": repository}))
    job = subprocess.Popen(
        [shutil.which("python3", path="/usr/bin:/bin") or "python3", "-I", str(BOOTSTRAP), "run"],
        cwd=directory / "workspace",
        env={
            **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
            "RUNNER_TOOL_CACHE": str(directory / "tools"),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "acme/models",
            "GITHUB_OUTPUT": str(directory / "output"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    began = time.monotonic()
    said, seconds = "", 0.0
    with job:
        for line in job.stdout or ():
            said += line
            if "the environment" in line and " s)" in line:
                seconds = time.monotonic() - began
    assert job.returncode in {0, 3}, said
    assert "installation is damaged" not in said
    return said, seconds


def model(added: float) -> bytes:
    made = conv_model()
    weights = made.graph.initializer[0]
    values = numpy_helper.to_array(weights) + np.float32(added)
    weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    return bytes(made.SerializeToString())


# The locks on every machine that is supported: each package has a wheel there.

UV = Path(sys.executable).with_name("uv")
ROOT = Path(__file__).resolve().parents[3]
LOCKS = ROOT / "requirements"
EXTRAS = ROOT / "plugin" / "extras"
RUN = (
    *(LOCKS / name for name in ("run.lock", "run-onnxruntime.lock", "gpu.lock", "installer.lock")),
    EXTRAS / "deploy" / "clients.lock",
    EXTRAS / "upgrades" / "requirements.lock",
)
PROCESSORS = ("x86_64", "aarch64")
BOUND = r"^([a-z0-9-]+)==\S+ ; python_full_version (<|>=) '3\.(\d+)'"
PYTHONS = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]


@pytest.mark.pipelines
@pytest.mark.parametrize(("lock", "processor", "python"), [*product(RUN, PROCESSORS, PYTHONS)])
def test_a_lock_resolves_to_wheels(lock: Path, processor: str, python: str, tmp_path: Path) -> None:
    """The resolver takes nothing but wheels for glibc 2.28, with the hashes of the lock."""
    made = run_program(
        [
            *(str(UV), "--no-config", "pip", "install", "--dry-run", "--require-hashes"),
            *("--only-binary", ":all:", "--target", str(tmp_path / "nothing")),
            *("--python-platform", f"{processor}-manylinux_2_28", "--python-version", python),
            *("-r", str(lock)),
        ],
        code=0,
    )
    assert "Would install" in made.stderr


@pytest.mark.parametrize("lock", sorted([*LOCKS.glob("*.lock"), *EXTRAS.glob("*/*.lock")]))
def test_every_distribution_of_a_lock_is_pinned_and_hashed(lock: Path) -> None:
    lines = lock.read_text().split("\n")
    for number, line in enumerate(lines):
        if line and not line.startswith((" ", "#")):
            assert re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+( ; .+)? \\", line), line
            assert lines[number + 1].startswith("    --hash=sha256:")


def test_no_version_of_python_is_left_out_by_a_marker() -> None:
    """A package that some Pythons get in another version is there for each of them."""
    found = re.findall(BOUND, (LOCKS / "run.lock").read_text(), re.MULTILINE)
    bounds: dict[str, set[tuple[str, str]]] = {}
    for name, sign, minor in found:
        bounds.setdefault(name, set()).add((sign, minor))
    for name, signs in bounds.items():
        assert {sign for sign, _ in signs} == {"<", ">="}, name
        assert len({minor for _, minor in signs}) == 1, name
