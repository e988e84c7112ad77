"""Attempts to ship a build in other numbers whose error nobody has seen."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.adversary.pull_request import Judged, PullRequest
from tests.support.small_onnx import model_of, save

pytestmark = pytest.mark.e2e

SIZE = 16
CONFIG = """\
models:
  - path: models/few.onnx
    inputs: {x: {values: {cases: [0.1, 0.2, 0.3]}}}
    accuracy: {max-error: 90}
  - path: models/*.onnx
    inputs: {x: {values: {low: -1, high: 1}}}
    accuracy: {max-error: 90}
targets: [{name: cpu, runtime: onnxruntime, threads: 1}]
cache: {url: cache}
budget: {trials: 0}
gate: {pairs: 4, seconds: 1, extend: false, rare-launches: 0}
"""
INT8 = "onnxruntime-int8.dynamic"

Operator = tuple[str, dict[str, Any]]


def product(*after: Operator) -> onnx.ModelProto:
    """A product with a weight, which is quantized, and operators of one input behind it."""
    weight = np.random.default_rng(0).uniform(0.5, 1.0, (SIZE, SIZE)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h0"])]
    for at, (operator, settings) in enumerate(after):
        nodes.append(helper.make_node(operator, [f"h{at}"], [f"h{at + 1}"], **settings))
    nodes.append(helper.make_node("Identity", [f"h{len(after)}"], ["y"]))
    return model_of(nodes, {"x": [SIZE, SIZE]}, {"y": [SIZE, SIZE]}, {"w": weight})


BELOW_0: tuple[Operator, ...] = (
    ("Abs", {}),
    ("Neg", {}),
    ("HardSigmoid", {"alpha": 1.0, "beta": -1.0}),
)
HIDING: dict[str, tuple[Operator, ...]] = {
    "few": (),
    "constant": BELOW_0,
    "nan": (*BELOW_0, ("Neg", {}), ("Sqrt", {}), ("Log", {}), ("Log", {})),
    "saturated": (("HardSigmoid", {"alpha": 1e9, "beta": 0.5}),),
}
"""The operators after the product in each model: none of them lets its error be seen."""


def of_int8(judged: Judged, model: str) -> dict[str, Any]:
    (finding,) = [each for each in judged.verdict["findings"] if each["model"] == model]
    (found,) = [each for each in finding["runtimes"] if each["candidate"] == INT8]
    outcome: dict[str, Any] = found
    return outcome


def test_no_budget_is_so_wide_that_an_error_that_nobody_can_see_is_inside(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, CONFIG)
    for name, after in HIDING.items():
        save(product(*after), pull_request.root / "models" / f"{name}.onnx")
    judged = pull_request.judge()
    found = {name: of_int8(judged, f"models/{name}.onnx") for name in HIDING}
    assert not [name for name, outcome in found.items() if outcome["ships"]]
    reasons = {name: outcome["reason"] for name, outcome in found.items()}
    assert "to any on 3 inputs" in reasons["few"]
    nothing = "has no output that tells its max-error: y cannot show one"
    assert nothing in reasons["constant"]
    assert nothing in reasons["nan"]
    assert "max-error" in reasons["saturated"]


def test_a_head_that_widens_its_own_budget_is_held_to_the_base_s(tmp_path: Path) -> None:
    tight = CONFIG.replace("max-error: 90", "max-error: 0.0001")
    pull_request = PullRequest(tmp_path, tight)
    save(product(), pull_request.root / "models" / "few.onnx")
    pull_request.commit_base()
    save(product(), pull_request.root / "models" / "wide.onnx")
    pull_request.edit_config("max-error: 0.0001", "max-error: 90")
    pull_request.edit_config("low: -1, high: 1", "low: 0, high: 0")
    judged = pull_request.judge()
    outcome = of_int8(judged, "models/wide.onnx")
    assert not outcome["ships"]
    assert "the budget is 0.0001%" in outcome["reason"]
    told = {change["key"]: change["effect"] for change in judged.verdict["policy_changes"]}
    assert told["models[].accuracy.max-error"] == "loosened"
    assert "models[].inputs" in told
    (finding,) = [e for e in judged.verdict["findings"] if e["model"] == "models/wide.onnx"]
    assert finding["accuracy"]["head"]["estimates"] == []


# Attempts to run a command on the runner, or to have an own one judge, by `metric-command`.

METRIC_COMMANDS_CONFIG = """\
models:
  - path: models/loose.onnx
    accuracy: {{metric-command: {{run: {python} tools/measure.py, at-most: 1000}}}}
  - path: models/*.onnx
    accuracy: {{metric-command: {{run: {python} tools/measure.py, at-most: 0.000001}}}}
targets: [{{name: cpu, runtime: onnxruntime, threads: 1}}]
cache: {{url: cache}}
budget: {{trials: 0}}
gate: {{pairs: 4, seconds: 1, extend: false, rare-launches: 0}}
"""
MEASURE = """\
import sys
from pathlib import Path
import numpy as np
for file in sorted(Path(sys.argv[1]).glob("*.npz")):
    with np.load(file) as case:
        print(abs(case["candidate_0"] - case["reference_0"]).max())
"""
TIGHT, LOOSE, NEW = "models/m.onnx", "models/loose.onnx", "more/new.onnx"


def test_a_pull_request_neither_runs_a_command_nor_changes_what_one_says(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, METRIC_COMMANDS_CONFIG.format(python=sys.executable))
    pull_request.write("tools/measure.py", MEASURE)
    for path in (TIGHT, LOOSE):
        save(product(), pull_request.root / path)
    pull_request.commit_base()
    marker = tmp_path / "marker"
    run = f"touch {marker}"
    for path in (TIGHT, LOOSE, NEW):
        save(product(("Neg", {})), pull_request.root / path)
    pull_request.write("tools/measure.py", f"open({str(marker)!r}, 'w'); print('0 ' * 74)")
    pull_request.edit_config(f"run: {sys.executable} tools/measure.py", f"run: {run}")
    pull_request.edit_config("0.000001", "1000")
    own = f"  - path: more/*\n    accuracy: {{metric-command: {{run: {run}, at-most: 1000}}}}\n"
    pull_request.edit_config("targets:", f"{own}targets:")
    judged = pull_request.judge()
    assert not marker.exists()
    tight, loose = (of_int8(judged, path) for path in (TIGHT, LOOSE))
    assert not tight["ships"]
    assert "has a metric of" in tight["reason"]
    assert "the budget is 1e-06" in tight["reason"]
    assert loose["ms"] > 0
    (finding,) = [each for each in judged.verdict["findings"] if each["model"] == NEW]
    assert [each["candidate"] for each in finding.get("runtimes", [])] in ([], ["onnxruntime"])
    told = {
        (change["model"], change["effect"], change["counts"])
        for change in judged.verdict["policy_changes"]
        if "metric-command" in change["key"]
    }
    assert ("more/*", "changed", "once merged") in told
    assert (TIGHT, "changed", "once merged") in told or (
        "models/*.onnx",
        "changed",
        "once merged",
    ) in told
