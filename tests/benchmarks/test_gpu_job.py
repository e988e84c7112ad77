"""A dry run of the job of a lease, on a stand-in for the device: a real one is lent for minutes."""

import json
import math
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from benchmarks import gpu_models
from benchmarks.gate.live_gates import count_verdicts, show
from benchmarks.gpu_figures import figures
from benchmarks.gpu_job import (
    Step,
    _bundle,
    _Job,
    _repetitions,
    carried_out,
    compared,
    config_of,
    in_float16,
    more_work,
    prepared_repository,
    steps,
)
from benchmarks.gpu_rehearsal import BRINGS, HAS, MOST_FILES, make_python
from benchmarks.kit.page import pages
from numpy.testing import assert_allclose
from onnx import helper, numpy_helper

from tests.cuda_stand_in.fixtures import WhatCuda
from tests.measure.test_paired_launches import ScriptedBench
from tests.support.present import present
from tests.support.programs import run_program
from tests.support.small_onnx import chain_model, model_of, save
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - name: gpu
    kind: cuda
    arch: sm_75
    device-wait-seconds: 60
budget:
  trials: 2
gate:
  pairs: 4
  seconds: 60
  extend: false
  rare-launches: 0
  tail-margin-percent: 1000
cache:
  url: cache
"""


@pytest.mark.parametrize(("share", "nodes"), [(0.05, 4), (0.7, 4), (1.0, 6), (2.5, 9)])
def test_more_work_computes_the_mean_of_all(share: float, nodes: int) -> None:
    model = chain_model(layers=2, width=8)
    more = more_work(model, share)
    before, after = (
        onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"])
        for each in (model, more)
    )
    x = np.ones((4, 8), np.float32)
    assert_allclose(after.run(None, {"x": x})[0], before.run(None, {"x": x})[0], rtol=0.01)
    assert len(more.graph.node) == nodes


def test_a_part_of_the_work_is_made_of_the_largest_that_fit() -> None:
    costs = {"large": 50, "middle": 30, "small": 15, "least": 5}
    assert _repetitions(costs, 0.25) == {"large": 0, "middle": 0, "small": 1, "least": 1}
    assert _repetitions(costs, 1.5) == {"large": 2, "middle": 1, "small": 1, "least": 1}
    assert _repetitions(costs, 0.01) == {"large": 0, "middle": 0, "small": 0, "least": 1}


def test_recurrent_layers_are_work_and_others_are_repeated_for_them() -> None:
    """A GRU costs 384 multiplications a token, the product 64 of 448: twice more is 29%."""
    sizes = {"w": (1, 24, 8), "r": (1, 24, 8), "v": (8, 8)}
    nodes = [
        helper.make_node("GRU", ["x", "w", "r"], ["states"], hidden_size=8),
        helper.make_node("MatMul", ["states", "v"], ["y"], name="product"),
    ]
    weights = {name: np.ones(size, np.float32) for name, size in sizes.items()}
    model = model_of(nodes, {"x": ["length", 1, 8]}, {"y": ["length", 1, 1, 8]}, weights)
    names = [node.name for node in more_work(model, 0.3, {"length": 4}).graph.node]
    assert names == ["", "product", "product_again", "product_again1", "product_mean"]


def test_what_changes_is_as_each_step_says(tmp_path: Path) -> None:
    """New weights of one model after the other, more work, the same less work, and what nobody but
    the last step has seen."""
    file, other = (save(chain_model(layers=2, width=8), tmp_path / f"{n}.onnx") for n in "mn")
    refused = save(chain_model(layers=1, width=8), tmp_path / "places.onnx")
    repository = prepared_repository(tmp_path / "job", [file, other], "")
    model, second, new = (repository / "models" / f"{name}.onnx" for name in ("m", "n", "places"))
    both = steps(repository, 1, [model, second], [refused], [40.0, 200.0])
    named = {each.name: each for each in both}
    seen = [model.read_bytes()]
    for name in ("weights", "slower", "faster", "much_slower", "refused"):
        prepare = named[name].prepare
        assert prepare is not None
        prepare()
        seen.append(model.read_bytes())
    given, weights, slower, faster, much_slower, last = seen
    assert given != weights == faster != slower
    assert len(weights) < len(slower) < len(much_slower) == len(last)
    assert new.read_bytes() != refused.read_bytes()
    assert second.read_bytes() == given
    present(named["weights-n"].prepare)()
    assert (second.read_bytes(), model.read_bytes()) == (weights, last)
    expected = {name: step.expected for name, step in named.items() if step.expected}
    assert expected == {"slower": 1, "much_slower": 1, "refused": 2}


def test_a_step_out_of_time_is_interrupted_and_told(tmp_path: Path) -> None:
    # A shell that starts the tests in the background has them ignore this signal.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    text = f"{heeds}; import time; print('so far', flush=True); time.sleep(600)"
    step = Step("slow", (sys.executable, "-I", "-S", "-c", text), 600)
    figures = carried_out(step, tmp_path, tmp_path, 5)
    assert (figures["exit_code"], figures["is_as_expected"]) == (None, False)
    assert "so far" in (tmp_path / "slow.log").read_text()


def test_a_step_is_told_how_long_it_has_and_its_tables_are_kept(tmp_path: Path) -> None:
    text = "print('| model | ms |'); print('|---|--:|'); print('| m | {seconds} |')"
    figures = carried_out(Step("first", (sys.executable, "-c", text), 600), tmp_path, tmp_path, 200)
    assert figures["is_as_expected"]
    (table,) = figures["tables"]
    assert (table["columns"], table["rows"]) == (("model", "ms"), (("m", "160"),))


def test_a_step_that_cannot_begin_is_told_like_one_that_fails(tmp_path: Path) -> None:
    def prepare() -> None:
        raise OSError("no space left")

    true = (sys.executable, "-c", "")
    for step in (Step("a", true, 9, prepare=prepare), Step("b", ("no-such-program",), 9)):
        figures = carried_out(step, tmp_path, tmp_path, 9)
        assert (figures["exit_code"], figures["is_as_expected"]) == (None, False)
        assert "Error: " in figures["last_line"]


def test_an_artifact_of_an_earlier_step_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    artifacts = tmp_path / ".tunegate"
    artifacts.mkdir()
    (artifacts / "verdict.json").write_text("{}")
    os.utime(artifacts / "verdict.json", (0, 0))
    (artifacts / "outcome-0.json").write_text("{}")
    os.utime(artifacts / "outcome-0.json", (2**32, 2**32))  # written while the step runs
    step = Step("slower", (sys.executable, "-P", "-m", "tunegate", "--version"), 60)
    assert carried_out(step, tmp_path, tmp_path, 60)["kept"] == ["slower.outcome-0.json"]
    assert not (tmp_path / "slower.verdict.json").exists()


def test_without_a_repository_the_steps_that_need_none_run(tmp_path: Path) -> None:
    done = run_program(
        [
            *(sys.executable, "-m", "benchmarks.gpu_job", "--out", str(tmp_path / "out")),
            *("--models", str(tmp_path / "none.onnx"), "--steps", "doctor", "gate"),
            *("--seconds", "31", "--spent", "2"),
        ],
        cwd=ROOT,
    )
    assert done.returncode == 1, done.stderr
    doctor, gate = json.loads((tmp_path / "out" / "gpu.json").read_text())["steps"]
    assert doctor["last_line"].startswith("the job has no repository: FileNotFoundError")
    assert gate == {"step": "gate", "is_left_out": True}


def test_a_lease_cut_short_in_any_step_leaves_what_came_before(tmp_path: Path) -> None:
    """Each step copies what would come back if the machine were taken away now."""
    out, kept = tmp_path / "out", tmp_path / "kept"
    out.mkdir()
    kept.mkdir()
    job = _Job(out, kept, 600, spent=0, patience=1)
    assert json.loads((out / "gpu.json").read_text())["steps"] == []
    names = [step.name for step in steps(tmp_path, 1, [], [tmp_path / "places.onnx"])]
    for name in names:
        copies = f"import shutil; shutil.copytree({str(out)!r}, {str(tmp_path / name)!r})"
        job.carry_out(Step(name, (sys.executable, "-I", "-S", "-c", copies), 60), tmp_path)
    for number, name in enumerate(names):
        *ended, last = json.loads((tmp_path / name / "gpu.json").read_text())["steps"]
        assert [(each["step"], each["exit_code"]) for each in ended] == [
            (each, 0) for each in names[:number]
        ]
        assert last == {"step": name, "is_running": True}
        assert len([*(tmp_path / name).iterdir()]) <= MOST_FILES
        for file in (tmp_path / name).glob("steps.tar.gz"):
            with tarfile.open(file) as packed:
                assert {*packed.getnames()} == {".", *(f"./{each}.log" for each in names[:number])}


def test_lent_machines_have_the_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no pytest, no hypothesis and none of the extras, unless the parts bring them."""
    make_python(tmp_path / "python", (*HAS, *BRINGS))
    places = (ROOT / place for place in ("", "plugin", "cache", "action"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, places)))  # as gpu.sh has it
    others = [each for each in steps(tmp_path, 1, [tmp_path]) if not each.is_of_job]
    modules = {"tests.gpu.test_on_a_gpu", *(each.command[2] for each in others)}
    python = tmp_path / "python" / "bin" / "python3"
    variables = {**others[0].variables(), "PATH": "/usr/bin:/bin"}
    done = run_program([str(python), "-c", f"import {', '.join(modules)}"], env=variables)
    assert done.returncode == 0, done.stderr[-2000:]


def test_models_are_compared_with_the_best_of_pytorch_in_float32(tmp_path: Path) -> None:
    """Also on the page of figures, by what a lease has brought back. Models that it had no time
    for are not there."""
    kept = tmp_path / "kept"
    kept.mkdir()
    times = {"eager": 6.0, "graph": 2.0, "tf32": 1.0, "compile": 2.5, "float16": 0.5}
    (kept / "peers.json").write_text(json.dumps({"encoder": times, "masks": {"eager": 1.0}}))
    half = {"candidate": "tvm-f16", "ms": 0.75, "error": {"center": 0.1}}
    for step, finding in (
        ("weights", {"model": "models/encoder.onnx", "status": "pass", "head_ms": 1.8}),
        ("weights-masks", {"model": "models/masks.onnx", "status": "fail", "head_ms": 1.6}),
        ("refused", {"model": "models/places.onnx", "status": "error"}),
        ("half", {"model": "models/encoder.onnx", "runtimes": [half]}),
    ):
        (kept / f"{step}.verdict.json").write_text(json.dumps({"findings": [finding]}))
    rows = (
        ("encoder", "2.000", "1.800", "0.90", "pass"),
        ("masks", "1.000", "1.600", "1.60", "fail"),
        ("places", "", "", "", "error"),
    )
    expected = [*rows, ("speech", "", "", "", "none")]
    assert list(compared(kept, ["encoder", "masks", "places", "speech"])) == expected
    (tmp_path / "gpu.json").write_text('{"machine": "one card", "steps": []}')
    _bundle(kept, tmp_path)
    found = present(figures(tmp_path))
    pages([found])  # raises where words are missing
    wanted = [rows, (("encoder", "tvm-f16", "0.750", "0.500", "0.100"),)]
    assert [table.rows for table in found.tables] == wanted
    assert found.says == (
        "tunegate takes 1.20x the time of PyTorch's best in float32, in the geometric mean of 2 "
        "models (0.90x to 1.60x); 1 of them reaches the goal of 0.9x."
    )
    (kept / "peers.json").unlink()
    _bundle(kept, tmp_path)
    assert figures(tmp_path) is None


def test_live_gates_are_counted_by_what_was_put_in(capsys: pytest.CaptureFixture[str]) -> None:
    """A gate that breaks counts, and none begins when the time is over."""
    broken = iter([False, False, False, True])

    def pair(percent: float) -> ScriptedBench:
        if percent and next(broken):
            raise MeasurementError("the device is busy")
        return ScriptedBench([math.log1p(percent / 100)] * 60)

    gate = GateConfig(margin_percent=0.5, rare_launches=0)
    gates = count_verdicts(pair, gate, [0.0, 1.0], 8, math.inf)
    assert [said for said, _ in gates[0.0]] == ["pass"] * 4
    assert [said for said, _ in gates[1.0]] == ["fail"] * 3 + ["invalid-env"]
    assert "the device is busy" in capsys.readouterr().out
    show(count_verdicts(pair, gate, [0.0], 8, until=0))
    assert "| 0% | 0 | 0 | 0 | 0 | 0 | 0 |" in capsys.readouterr().out


def test_only_a_model_that_has_a_size_gets_one() -> None:
    """`tunegate doctor` refuses a configuration with another."""
    usual = [Path(f"{name}.onnx") for name in gpu_models.USUAL]
    assert "dims" not in config_of(usual)
    assert config_of([*usual, Path("speech.onnx")]).endswith("dims: {length: 16000}\n")


@pytest.mark.cuda_stand_in
@pytest.mark.gpu_job
@pytest.mark.timeout(2400)
def test_the_whole_job_ends_as_it_should(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    """New weights pass without a trial, 8% and 30% more work fail, and the layer that it is in is
    told; the way back passes."""
    given = cuda_stand_in(multiprocessors=1, capability=75, busy_percent=37, pace=2000)
    out = tmp_path / "steps"
    steps = ("doctor", "warm", "weights", "slower", "faster", "half", "much_slower")
    done, code = dry_run(tmp_path, given, steps)
    told = {each["step"]: (each["exit_code"], each["last_line"]) for each in done}
    *decided, half, much_slower = [each["exit_code"] for each in done]
    assert [*decided, much_slower] == [0, 0, 0, 1, 0, 1], told
    # float16 is timed within the budget of the base; emulated, it may be too slow to decide.
    assert (half, code) in {(0, 0), (3, 1)}, told
    timed = {name: (ms, error) for _, name, ms, _, error in in_float16(out)}
    assert all(float(each) > 0 for each in timed["tvm-f16"])
    assert "cores and 37% of the GPU's time were busy" in (out / "warm.log").read_text()
    assert verdict(out, "weights")["tuning"]["trials"] == 0
    for step, percent in (("slower", 8), ("much_slower", 30)):
        (slower,) = verdict(out, step)["findings"]
        assert slower["status"] == "fail"
        assert slower["change_percent"]["center"] == pytest.approx(percent, rel=0.4)
        assert any("_again" in each["name"] for each in slower["differences"])
    (faster,) = verdict(out, "faster")["findings"]
    assert faster["change_percent"]["high"] < 0


def verdict(out: Path, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"{step}.verdict.json").read_text())
    return found


def dry_run(
    place: Path, variables: dict[str, str], steps: Sequence[str]
) -> tuple[list[dict[str, Any]], int]:
    chain = chain_model(layers=13, width=32, rows=16)
    for each in chain.graph.initializer:  # a product is as large as what goes in, for float16
        values = numpy_helper.to_array(each) / np.float32(32**0.5)
        each.CopyFrom(numpy_helper.from_array(values, each.name))
    model = save(chain, place / "m.onnx")
    (place / "tunegate.yaml").write_text(CONFIG)
    interpreter = Path(sys.executable).parent
    done = subprocess.run(
        [
            *("bash", str(ROOT / "benchmarks" / "gpu.sh"), "--", "--minutes", "0.5"),
            *("--seconds", "2000", "--patience", "5", "--models", str(model)),
            *("--config", str(place / "tunegate.yaml"), "--more", "8", "30"),
            *("--steps", *steps),
        ],
        env={
            **variables,
            "OUT": str(place / "out"),
            "PATH": f"{interpreter}{os.pathsep}{variables['PATH']}",
        },
        stdout=subprocess.DEVNULL,
        check=False,
    )
    out = place / "out"
    assert {each.name for each in out.iterdir()} == {"gpu.json", "steps.tar.gz"}
    with tarfile.open(out / "steps.tar.gz") as packed:
        packed.extractall(place / "steps", filter="data")
    return json.loads((out / "gpu.json").read_text())["steps"], done.returncode
