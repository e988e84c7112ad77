"""A model ships as one shared object, which a process without TVM loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.workspace import CONFIG, FIRST_ANALYSIS, Workspace
from tunegate.edges.output.artifact_file import ArtifactFile

pytestmark = pytest.mark.e2e

NATIVE = CONFIG + "targets:\n  - name: cpu\n    threads: 1\n    artifact: native\n" + FIRST_ANALYSIS
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from tunegate.runtimes.loading import load
x = np.load(sys.argv[2])
np.save(sys.argv[3], load(Path(sys.argv[1])).run({sys.argv[4]: x})[0])
assert "tvm" not in sys.modules
"""


def test_a_run_ships_a_shared_object_that_loads_without_the_compiler(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", NATIVE.replace("trials: 2", "trials: 0"))
    done = workspace.tunegate("run", "--json")
    assert done.returncode == 0, done.stderr
    results = workspace.root / ".tunegate"
    (built,) = json.loads((results / "measurements.json").read_text())["builds"]
    head = results / built["head"]["directory"]
    artifact = ArtifactFile.read(head)
    assert (artifact.file, artifact.entry) == ("libmodel.so", "model_run")
    assert set(artifact.files) == {"libmodel.so", "model.h"}
    assert built["head"]["check"]["passed"]
    (given,) = artifact.inputs
    x = np.random.default_rng(1).random(given.shape, np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / name) for name in ("x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", PROGRAM, str(head), *files, given.name], check=True)
    assert np.load(tmp_path / "y.npy").any()
