"""A model ships as one shared object, which programs without TVM load."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.programs import require
from tests.support.workspace import CONFIG, FIRST_ANALYSIS, Workspace

from tunegate.system.output.artifact_file import ArtifactFile

pytestmark = pytest.mark.e2e

NATIVE = CONFIG + "targets:\n  - name: cpu\n    threads: 1\n    artifact: native\n" + FIRST_ANALYSIS
OURS = """
import sys
from pathlib import Path
from tunegate.runtimes.loading import load as loaded
load = lambda directory: loaded(Path(directory)).run
"""
ASK = """
import sys
x = np.zeros([1, 16, 14, 14], "float32")
print(f"{load(sys.argv[1])({'x': x})[0].flat[0]:.6g}")
assert "tvm" not in sys.modules
"""
HERE = Path(__file__).parents[2]
EXAMPLES = HERE / "examples"
LINKED = ["libmodel.so", "-Wl,-rpath,$ORIGIN", "-o", "run"]
LINES = {
    "c": ["gcc", "-Wall", "-Werror", "run.c", *LINKED],
    "cpp": ["g++", "-std=c++17", "-Wall", "-Werror", "run.cpp", *LINKED],
    "rust": [
        "rustc",
        "--edition",
        "2021",
        "-L",
        ".",
        "-l",
        "model",
        "-C",
        "link-arg=-Wl,-rpath,$ORIGIN",
        "run.rs",
    ],
}


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the head's build that a run ships."""
    root = tmp_path_factory.mktemp("native") / "w"
    workspace = Workspace(root, NATIVE.replace("trials: 2", "trials: 0"))
    done = workspace.tunegate("run", "--json")
    assert done.returncode == 0, done.stderr
    results = root / ".tunegate"
    (built,) = json.loads((results / "measurements.json").read_text())["builds"]
    assert built["head"]["check"]["passed"]
    return Path(results / built["head"]["directory"])


def test_a_run_ships_a_shared_object_and_its_header(head: Path) -> None:
    artifact = ArtifactFile.read(head)
    assert (artifact.file, artifact.entry) == ("libmodel.so", "model_run")
    assert set(artifact.files) == {"libmodel.so", "model.h"}


def test_the_documented_loader_and_ours_need_no_compiler(head: Path) -> None:
    page = (HERE / "README.md").read_text()
    (documented,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    said = [
        output(head, [sys.executable, "-c", text + "\nimport numpy as np" + ASK, str(head)])
        for text in (documented, OURS)
    ]
    assert said[0] == said[1]
    assert np.isfinite(float(said[0]))


@pytest.mark.parametrize(
    "language",
    ["c", "python", *(pytest.param(each, marks=pytest.mark.pipelines) for each in ("cpp", "rust"))],
)
def test_the_examples_run_it(head: Path, tmp_path: Path, language: str) -> None:
    at = Path(shutil.copytree(head, tmp_path / "at"))
    for example in EXAMPLES.iterdir():
        shutil.copy(example, at)
    line = LINES.get(language)
    if line is not None:
        require(line[0])
        subprocess.run(line, cwd=at, check=True, env=compiler_environment())
    told = output(at, ["./run"] if line is not None else [sys.executable, "run.py", "."])
    ours = output(at, [sys.executable, "-c", OURS + "\nimport numpy as np" + ASK, str(at)])
    *tensors, first = told.splitlines()
    assert tensors == ["y float32 25088"]
    assert float(first) == pytest.approx(float(ours), rel=1e-5)


def compiler_environment() -> dict[str, str]:
    """The variables of a compiler: rustup looks into the home, and that of a test is empty."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    return {"RUSTUP_HOME": f"{home}/.rustup", **os.environ}


def output(at: Path, line: list[str]) -> str:
    done = subprocess.run(line, cwd=at, check=True, capture_output=True, text=True)
    return done.stdout.strip()
