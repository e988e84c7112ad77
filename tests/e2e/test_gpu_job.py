"""A whole job on a GPU runner, with a stand-in for the device: minutes each, by `make gpu-jobs`.

The device has compute capability 7.5, for which one launch of a whole model is not offered: its
kernels are timed by tens of thousands of launches.
"""

import csv
import fcntl
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from benchmarks.gpu_job import more_work
from benchmarks.kit.model_changes import new_weights
from research.experience.lines import read_experience
from research.experience.measured_tasks import MIN_ROWS

from tests.cuda_stand_in.environment import ILLEGAL_ADDRESS, LOST, launches, lose_device
from tests.cuda_stand_in.fixtures import WhatCuda
from tests.e2e.action_runner import Event, run_action
from tests.support.programs import run_program
from tests.support.small_onnx import chain_model, save
from tests.support.workspace import FIRST_ANALYSIS, Workspace
from tunegate.tune.prior import NEST_COLUMNS, Prior, columns_of
from tunegate_cache.format.decompression import decompress

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.cuda_stand_in,
    pytest.mark.gpu_job,
    pytest.mark.timeout(1800),
]

PATIENT = FIRST_ANALYSIS.replace("seconds: 1\n", "seconds: 60\n")
"""On a machine with five processes for each core TVM starts in more than half a minute."""
CONFIG = f"""models:
  - path: models/*.onnx
targets:
  - name: gpu
    kind: cuda
    arch: sm_75
    device-wait-seconds: 60
budget:
  trials: 2
cache:
  url: cache
{PATIENT}  margin-percent: 100
  tail-margin-percent: 1000
"""
SMALL: dict[str, object] = {"multiprocessors": 1, "capability": 75}
WIDTH = 32
PASS, INCONCLUSIVE = 0, 3
"""The exit codes for equal builds: a busy machine may leave open how slow rare inferences are."""
GATE = ("run", "-v", "--base", "HEAD~1", "--trials", "0")


class KindsOfModels(NamedTuple):
    """Tokens of a table, of a dynamic length; masks in integers and booleans alone; and places that
    depend on values, which TVM refuses."""

    tokens: onnx.ModelProto
    masks: onnx.ModelProto
    places: onnx.ModelProto


def kinds_of_models() -> KindsOfModels:
    draw = np.random.default_rng(0)
    weights = {
        "table": draw.standard_normal((50, 16)).astype(np.float32),
        "weight": draw.standard_normal((16, 16)).astype(np.float32),
    }
    integers = {"none": np.array(0), "minus": np.array(-1)}
    return KindsOfModels(
        tokens=parsed(
            "(int64[1,length] ids) => (float[1,length,16] y)"
            "{ rows = Gather(table, ids) z = MatMul(rows, weight) y = Relu(z) }",
            weights,
        ),
        masks=parsed(
            "(int64[1,32] ids) => (int64[1,32] places)"
            "{ is_pad = Equal(ids, none) kept = Not(is_pad) counted = Add(ids, ids)"
            " places = Where(kept, counted, minus) }",
            integers,
        ),
        places=parsed("(float[4,8] x) => (int64[2,n] y) { y = NonZero(x) }", {}),
    )


def convolution_network() -> onnx.ModelProto:
    """A stem, a depthwise and a pointwise convolution around which a shortcut leads, and a head."""
    draw = np.random.default_rng(0)
    sizes = {"stem": (8, 3, 3, 3), "depth": (8, 1, 3, 3), "point": (8, 8, 1, 1), "last": (8, 10)}
    return parsed(
        "(float[1,3,16,16] x) => (float[1,10] y)"
        "{ a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, stem) b = Relu(a)"
        " c = Conv<pads=[1,1,1,1], group=8>(b, depth) d = Conv(c, point) e = Add(d, b)"
        " f = Relu(e) g = MaxPool<kernel_shape=[2,2], strides=[2,2]>(f)"
        " h = GlobalAveragePool(g) i = Flatten(h) y = Gemm(i, last) }",
        {name: draw.standard_normal(size).astype(np.float32) for name, size in sizes.items()},
    )


def parsed(graph: str, constants: Mapping[str, Any]) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> model {graph}')
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type.lower()}{number}"
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in constants.items()
    )
    return model


def interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


class GpuRunner:
    """A repository with a chain of products, and a machine with these devices."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self.workspace = Workspace(root, CONFIG)
        self.workspace.begin_with(chain_model(layers=2, width=WIDTH))
        self.variables = variables

    def tunegate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.workspace.tunegate(*arguments, **self.variables)

    def ended_by(
        self, act: Callable[[subprocess.Popen[str]], object], at: str, *arguments: str
    ) -> tuple[int, str]:
        """The exit code of a command, and what it said after it had said `at`, when this was
        done."""
        with self.workspace.start(*arguments, **self.variables) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if at in line:
                    break
            act(process)
            printed, said = process.communicate(timeout=300)
        return process.returncode, f"{printed}{said}"

    def commit(self, model: onnx.ModelProto) -> None:
        save(model, self.workspace.root / "models" / "m.onnx")
        self.workspace.commit()

    def costs(self) -> Any:
        """The costs of the first task's candidates, in turn."""
        outcome = self.workspace.root / ".tunegate" / "outcome-0.json"
        return json.loads(outcome.read_text())["tasks"][0]["costs"]

    def configure_by_init(self, models: Mapping[str, onnx.ModelProto]) -> str:
        """Has `init` write the configuration for these models instead, and makes its gate short.
        Returns what `init` printed."""
        root = self.workspace.root
        for file in (root / "models" / "m.onnx", root / "tunegate.yaml"):
            file.unlink()
        for name, model in models.items():
            save(model, root / "models" / f"{name}.onnx")
        self.workspace.commit()
        began = self.tunegate("init")
        written = (root / "tunegate.yaml").read_text()
        assert "kind: cuda" in written
        self.workspace.write(
            "tunegate.yaml",
            written.replace("~/.cache/tunegate", "cache")
            .replace('"length": 128', '"length": 8')
            .replace("gate:\n  margin-percent: 3\n", CONFIG[CONFIG.index("gate:") :]),
        )
        self.workspace.commit()
        return began.stdout

    def builds(self) -> Any:
        """The builds of base and head of the only model."""
        file = self.workspace.root / ".tunegate" / "measurements.json"
        (cell,) = json.loads(file.read_text())["builds"]
        return cell["base"], cell["head"]

    def history(self) -> list[dict[str, str]]:
        """The rows of `tunegate history`, which needs no device."""
        shown = self.tunegate("history", "--format", "csv")
        assert shown.returncode == 0, shown.stderr
        written = (self.workspace.root / ".tunegate" / "history.csv").read_text()
        return [*csv.DictReader(written.splitlines())]

    def verdict(self) -> Any:
        return json.loads((self.workspace.root / ".tunegate" / "verdict.json").read_text())


def test_a_cancelled_job_ends_soon_and_says_so(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    code, _ = runner.ended_by(interrupt, "tune: shard 0", "warm", "-v")
    assert code == 130


def test_a_gate_that_is_cancelled_leaves_the_device_to_others(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    runner.commit(new_weights(chain_model(layers=2, width=WIDTH)))
    code, _ = runner.ended_by(interrupt, "measure: models/m.onnx", *GATE)
    assert code == 130
    assert not (runner.workspace.root / ".tunegate" / "verdict.json").exists()
    (lock,) = tmp_path.glob("cuda-stand-in/*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


ILLEGAL = (
    r"ended with an error while models were timed: (base|head): .*cudaErrorIllegalAddress .700."
)


@pytest.mark.parametrize(
    ("error", "told", "command"),
    [
        (LOST, "was lost while models were (timed|built).*cudaErrorUnknown .999.", GATE),
        (ILLEGAL_ADDRESS, ILLEGAL, GATE),
        (ILLEGAL_ADDRESS, ILLEGAL, ("compare", "-v", "old.onnx", "models/m.onnx")),
    ],
    ids=["lost", "700", "compare"],
)
def test_a_gate_whose_device_fails_decides_nothing(
    tmp_path: Path, cuda_stand_in: WhatCuda, error: int, told: str, command: tuple[str, ...]
) -> None:
    variables = cuda_stand_in(lost_after=10**9, **SMALL)
    runner = GpuRunner(tmp_path / "w", variables)
    save(chain_model(layers=2, width=WIDTH), runner.workspace.root / "old.onnx")
    runner.commit(new_weights(chain_model(layers=2, width=WIDTH)))
    code, said = runner.ended_by(lambda _: lose_device(variables, error), "measure: ", *command)
    assert code == 4, said
    assert re.search("Machine unfit: (models/)?m.onnx on gpu", said)
    assert re.search(rf"NVIDIA stand-in \(GPU-stand-in\) {told}", " ".join(said.split())), said
    assert "could not be measured on this machine" not in said
    if command == GATE:  # two files have no history
        assert [row["status"] for row in runner.history()] == ["invalid-env"]


def test_a_shard_whose_device_fails_keeps_what_it_has_measured(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    """And says why there is no more, though it decides nothing and ends with 0."""
    variables = cuda_stand_in(lost_after=10**9, pace=2000, **SMALL)
    runner = GpuRunner(tmp_path / "w", variables)
    other = runner.workspace.root / "models" / "n.onnx"
    for change in (lambda model: model, new_weights):
        save(change(chain_model(layers=1, width=WIDTH)), other)
        runner.commit(change(chain_model(layers=2, width=WIDTH)))
    planned = runner.tunegate("plan", "--base", "HEAD~1", "--trials", "0")
    assert planned.returncode == 0, planned.stderr
    code, said = runner.ended_by(
        lambda _: lose_device(variables, ILLEGAL_ADDRESS),
        *("measure: models/n.onnx", "measure", "--shard", "0", "-v"),
    )
    assert code == 0, said
    assert re.search(rf"n.onnx on gpu: 0 launches: .* {ILLEGAL}", " ".join(said.split())), said
    decided = runner.tunegate("verdict")
    assert decided.returncode == 4, decided.stderr
    found = {each["model"]: each["status"] for each in runner.verdict()["findings"]}
    assert found == {"models/m.onnx": "pass", "models/n.onnx": "invalid-env"}
    assert {row["model"]: row["status"] for row in runner.history()} == found


def test_both_parts_of_a_device_tune(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    """MIG: each part is a device of its own, as two cards are. What both learn comes first where
    another product is tuned."""
    variables = cuda_stand_in(devices=("GPU-one",), parts=("MIG-one", "MIG-two"), **SMALL)
    runner = GpuRunner(tmp_path / "w", variables)
    warmed = runner.tunegate("warm", "--trials", "8")
    assert warmed.returncode == 0, warmed.stderr
    first, second = launches(variables)
    assert first > 0
    assert second > 0
    picks = [cost["pick"] for cost in runner.costs() if cost["origin"] == "search"]
    assert picks.count("predicted") > picks.count("audit"), "first picks are made by analysis"
    assert "random" not in picks
    runner.commit(chain_model(layers=2, width=48))
    assert runner.tunegate("warm", "--trials", "1").returncode == 0
    assert "transfer" in {cost["origin"] for cost in runner.costs()[:2]}


def test_two_cards_tune(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    variables = cuda_stand_in(devices=("GPU-one", "GPU-two"), **SMALL)
    warmed = GpuRunner(tmp_path / "w", variables).tunegate("warm", "--trials", "4")
    assert warmed.returncode == 0, warmed.stderr
    first, second = launches(variables)
    assert first > 0
    assert second > 0


def test_idle_runners_measure_what_a_search_needs(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    root, packed = runner.workspace.root, tmp_path / "cuda.jsonl.zst"
    runner.commit(chain_model(layers=1, width=96))

    def carried_out(script: str, *options: str) -> None:
        command = [sys.executable, "-m", f"research.experience.{script}", *options]
        done = run_program([*command, "--repository", str(root)], env=runner.variables)
        assert done.returncode == 0, done.stderr

    measuring = ("--tasks", "1", "--trials", "24", "--trials-per-task", "24")
    carried_out("collect", "--out", str(tmp_path / "out"), *measuring)
    carried_out("export", "--kind", "cuda", str(packed))
    tasks, refused = read_experience(decompress(packed.read_bytes()).splitlines())
    (task,) = tasks
    assert (len(task.rows) >= MIN_ROWS, task.device, refused) == (True, "NVIDIA stand-in", 0)
    shares = [row[NEST_COLUMNS] for row in columns_of(task)]
    assert len({*shares}) > 1, "by analysis, for this card"
    assert Prior(tasks).ratios(columns_of(task)).std() > 0


def test_a_schedule_that_nobody_measured_is_tried_in_its_model(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    """Its kernels are watched one by one, and shipped in a CUDA graph: waiting for the device while
    that is captured is error 906, and each such build would die."""
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    warmed = runner.tunegate("warm", "--trials", "2")
    assert warmed.returncode == 0, warmed.stderr
    other = chain_model(layers=2, width=48)
    runner.commit(other)
    runner.commit(new_weights(other))
    done = runner.tunegate("run", "--base", "HEAD~1", "--trials", "0")
    assert done.returncode in {PASS, INCONCLUSIVE}, done.stderr
    assert runner.verdict()["tuning"]["transfer"] == 1
    base, head = runner.builds()
    for build in (base, head):
        assert (build["without_picks"], build["without_graphs"]) == ("", ""), "none died"
    (task,) = base["tasks"]
    assert task["source"] == "transfer" or base["dropped"], "it was tried, and may have been slower"


def test_where_nvrtc_is_missing_nvcc_compiles(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(has_nvrtc=False, **SMALL))
    warmed = runner.tunegate("warm", "--trials", "1")
    assert warmed.returncode == 0, warmed.stderr
    assert "ships with TVM" in warmed.stdout


@pytest.mark.parametrize(
    ("command", "doing"),
    [
        (("warm", "--trials", "2"), "while candidates ran"),
        (("run", "--base", "HEAD~1", "--trials", "0"), "while models were built"),
    ],
)
def test_a_device_that_is_lost_decides_nothing(
    command: tuple[str, ...], doing: str, tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(lost_after=3, **SMALL))
    runner.commit(new_weights(chain_model(layers=2, width=WIDTH)))
    done = runner.tunegate(*command)
    assert done.returncode == 4, done.stderr
    assert f"NVIDIA stand-in (GPU-stand-in) was lost {doing}" in done.stderr
    assert "cudaErrorUnknown (999)" in done.stderr


def test_a_model_that_does_not_fit_says_that_the_device_has_no_memory(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(memory_mb=1, **SMALL))
    runner.commit(chain_model(layers=2, width=512))
    done = runner.tunegate("run", "--base", "HEAD~1")
    assert done.returncode == 2, done.stderr
    assert "cudaErrorMemoryAllocation (2): out of memory" in done.stderr
    warmed = runner.tunegate("warm", "--trials", "1")
    assert warmed.returncode == 2, warmed.stderr
    assert "ships with nothing: TVM: the compiled model does not run (CUDA" in warmed.stdout


def test_a_run_as_init_configures_it_a_comparison_and_the_history_of_both(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    """New weights of a table of a dynamic length pass, and a comparison with less work does."""
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    tokens = kinds_of_models().tokens
    assert "tuned and gated on NVIDIA stand-in" in runner.configure_by_init({"m": tokens})
    runner.commit(new_weights(tokens))
    passed = runner.tunegate("run", "--base", "HEAD~1", "--trials", "0")
    assert passed.returncode == 0, passed.stderr
    (finding,) = runner.verdict()["findings"]
    assert (finding["target"], finding["status"]) == ("gpu", "pass")
    (row,) = runner.history()
    assert (row["model"], row["target"], row["status"]) == ("models/m.onnx", "gpu", "pass")
    more = save(more_work(tokens, 20), tmp_path / "more.onnx")
    compared = runner.tunegate(
        *("compare", str(more), str(runner.workspace.root / "models" / "m.onnx")),
        *("--trials", "0", "--shape", "ids=1,8"),
    )
    assert compared.returncode == 0, compared.stderr
    (finding,) = runner.verdict()["findings"]
    assert finding["change_percent"]["high"] < 0


def test_a_convolution_network_is_right_and_ships(tmp_path: Path, cuda_stand_in: WhatCuda) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    for model in (convolution_network(), new_weights(convolution_network())):
        runner.commit(model)
    done = runner.tunegate(*GATE)
    assert done.returncode in {PASS, INCONCLUSIVE}, done.stderr
    for build in runner.builds():
        assert build["check"]["passed"], "it computes what ONNX Runtime does"
        assert build["without_graphs"] == ""


@pytest.mark.proof
def test_kinds_of_models_on_a_part_of_a_device_as_init_configures_it(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    """Also in several jobs, as CI has them. No CUPTI is there, as in all of these tests."""
    runner = GpuRunner(
        tmp_path / "w", cuda_stand_in(devices=("GPU-one",), parts=("MIG-one",), **SMALL)
    )
    root, models = runner.workspace.root, kinds_of_models()
    assert "tuned and gated on NVIDIA stand-in MIG 1g" in runner.configure_by_init(models._asdict())
    warmed = runner.tunegate("warm", "--trials", "1")
    assert warmed.returncode == 2, warmed.stderr  # one of them ships with nothing
    for name in ("tokens", "masks"):
        assert f"models/{name}.onnx on gpu ships with TVM" in warmed.stdout
    assert "places.onnx on gpu ships with nothing: operator NonZero" in warmed.stdout
    save(new_weights(models.tokens), root / "models" / "tokens.onnx")
    runner.workspace.commit()
    assert runner.tunegate("plan", "--base", "HEAD~1").returncode == 0
    decided = runner.tunegate("gate")
    assert decided.returncode == 0, decided.stderr
    assert runner.verdict()["tuning"]["trials"] == 0
    (finding,) = runner.verdict()["findings"]
    assert (finding["model"], finding["status"]) == ("models/tokens.onnx", "pass")
    told = runner.tunegate("cache", "stats")
    assert told.returncode == 0, told.stderr
    assert "that wrote to zone" in told.stdout


@pytest.mark.proof
def test_the_actions_stages_measure_two_models_on_two_gpu_runners(
    tmp_path: Path, cuda_stand_in: WhatCuda, node_modules: Path
) -> None:
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(**SMALL))
    root = runner.workspace.root
    models = {name: chain_model(layers=1, width=width) for name, width in (("m", 16), ("n", 32))}
    for name, model in models.items():
        save(model, root / "models" / f"{name}.onnx")
    runner.workspace.commit()
    for name, model in models.items():
        save(new_weights(model), root / "models" / f"{name}.onnx")
    runner.workspace.commit()
    (tmp_path / "temp").mkdir()

    def stage(name: str, **inputs: str) -> dict[str, Any]:
        done = run_action(
            Event("workflow_dispatch", {}),
            {"stage": name, "base": "HEAD~1", "head": "HEAD", "trials": "0", **inputs},
            workspace=root,
            temp=tmp_path / "temp",
            node_modules=node_modules,
            variables=runner.variables,
        )
        assert done["exitCode"] == 0, done["log"]
        outputs: dict[str, Any] = done["outputs"]
        return outputs

    planned = stage("plan", **{"measure-shards": "2"})
    shards = [str(each["shard"]) for each in json.loads(planned["measure-matrix"])["include"]]
    assert shards == ["0", "1"]
    for shard in shards:
        stage("measure", shard=shard)
    assert stage("gate")["verdict"] == "pass"
    findings = {each["model"]: each["status"] for each in runner.verdict()["findings"]}
    assert findings == {"models/m.onnx": "pass", "models/n.onnx": "pass"}


@pytest.mark.proof
def test_one_launch_of_the_whole_model_is_tried_and_new_weights_pass(
    tmp_path: Path, cuda_stand_in: WhatCuda
) -> None:
    """Beside the kernels, on a card that has it. Both make use of all shared memory there is."""
    runner = GpuRunner(tmp_path / "w", cuda_stand_in(multiprocessors=1))
    runner.workspace.write("tunegate.yaml", CONFIG.replace("sm_75", "sm_90"))
    runner.commit(chain_model(layers=1, width=8))
    warmed = runner.tunegate("warm", "--trials", "1", "-v")
    assert warmed.returncode == 0, warmed.stderr
    assert "build: 1 build with TVM (whole): models/m.onnx" in warmed.stderr
    assert "models/m.onnx on gpu ships with TVM" in warmed.stdout
    runner.commit(new_weights(chain_model(layers=1, width=8)))
    passed = runner.tunegate("run", "--base", "HEAD~1")
    assert passed.returncode == 0, passed.stderr
    assert runner.verdict()["tuning"]["trials"] == 0
