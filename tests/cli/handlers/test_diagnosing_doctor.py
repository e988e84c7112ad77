from __future__ import annotations

import datetime
import json
from pathlib import Path

import msgspec
import pytest

from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.cli.commands.starting import DoctorOptions
from tunegate.cli.handlers import doctor
from tunegate.cli.shared_options import CacheAddress, Common


def test_a_healthy_machine_is_shown_with_the_source_of_each_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    common = Common(repository=workspace.root, quiet=True)
    assert doctor.run(DoctorOptions(common=common)) == 0
    assert capsys.readouterr().out == ""
    common = Common(repository=workspace.root, as_json=True)
    asked = DoctorOptions(common=common, cache=CacheAddress(given={"cache.mode": "ro"}))
    assert doctor.run(asked) == 0
    diagnosis = json.loads(capsys.readouterr().out)
    assert all(check["ok"] for check in diagnosis["checks"])
    details = {check["name"]: check["detail"] for check in diagnosis["checks"]}
    assert "uncommitted" not in details["repository"]
    assert "git version" in details["repository"]
    assert details["onnxruntime"].count(".") >= 1
    sources = {setting["key"]: setting["source"] for setting in diagnosis["settings"]}
    assert sources["cache.mode"] == "argument"
    assert sources["budget.trials"] == "file"
    assert sources["gate.margin-percent"] == "default"
    assert not {"tvm", "linker", "cuda devices", "openvino"} & set(details)
    assert [(each["entry"], each["state"]) for each in diagnosis["models"]] == [
        ("models/*.onnx", "committed")
    ]


def test_each_dynamic_dimension_is_shown_with_what_says_its_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    for name in ("m", "n"):
        save(matmul_model(rows=name), workspace.root / "models" / f"{name}.onnx")
    workspace.write("tunegate.yaml", f"dims: {{m: 3}}\n{NOT_COMPILED}")
    common = Common(repository=workspace.root, as_json=True)
    assert doctor.run(DoctorOptions(common=common)) == 2
    diagnosis = json.loads(capsys.readouterr().out)
    sizes = [(each["symbol"], each["size"], each["source"]) for each in diagnosis["sizes"]]
    assert sizes == [("m", 3, "dims"), ("n", None, "")]
    (wrong,) = [check["detail"] for check in diagnosis["checks"] if check["name"] == "shapes"]
    assert wrong.startswith('models/n.onnx: dimension "n" (axis 0 of x) is dynamic.')
    assert [each["state"] for each in diagnosis["models"]] == [
        "changed since the commit",
        "not committed yet",
    ]


def test_a_mistake_in_the_configuration_is_shown_beside_what_is_fine_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("tunegate.yaml", "models: 3\n")
    common = Common(repository=workspace.root)
    assert doctor.run(DoctorOptions(common=common)) == 2
    shown = capsys.readouterr().out
    assert "compiler self-test" in shown
    assert "models" in shown
    quiet = msgspec.structs.replace(common, quiet=True)
    assert doctor.run(DoctorOptions(common=quiet)) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("configuration: ")


def test_what_a_run_would_refuse_is_named_at_once_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    more = "models:\n  - path: modles/*.onnx\n  - path: b.onnx\n"
    workspace.write("tunegate.yaml", NOT_COMPILED.replace("models:\n", more))
    workspace.write("models/m.onnx", "nonsense")
    workspace.write("tunegate-waivers.yaml", "waivers: 3\n")
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, quiet=True))) == 2
    lines = capsys.readouterr().out.splitlines()
    starts = [line[:30] for line in lines]
    assert starts == [
        "models: path modles/*.onnx mat",
        "models: path b.onnx matches no",
        "waivers: tunegate-waivers.yaml",
        "models: models/m.onnx: not a r",
    ]


def test_a_typo_in_a_glob_gets_the_nearest_model_and_no_word_on_its_waiver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED.replace("models/", "modles/"))
    soon = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=30)
    workspace.write(
        "tunegate-waivers.yaml",
        "waivers:\n  - {model: models/m.onnx, target: cpu, ceiling-percent: 9,"
        f" expires: {soon}, issue: 'https://example.com/1', reason: known}}\n",
    )
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, quiet=True))) == 2
    wrong = capsys.readouterr().out.splitlines()
    assert "Did you mean models/*.onnx?" in " ".join(wrong)
    assert not [line for line in wrong if line.startswith("waivers")]


def test_names_of_a_checkout_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w [" / "b]", NOT_COMPILED)
    (workspace.root / "models" / "m.onnx").rename(workspace.root / "models" / "[tvm].onnx")
    workspace.commit()
    common = Common(repository=workspace.root)
    assert doctor.run(DoctorOptions(common=common)) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert "w[/b]/tunegate.yaml" in shown
    assert "Alliswell." in shown or "Allworks;betterwithalookat:load" in shown
    asked = Common(repository=workspace.root, verbose=True)
    assert doctor.run(DoctorOptions(common=asked)) == 0
    assert "models/[tvm].onnx" in "".join(capsys.readouterr().out.split())


def test_a_runtime_that_a_target_names_is_missed_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED.replace("onnxruntime", "openvino"))
    common = Common(repository=workspace.root, as_json=True)
    assert doctor.run(DoctorOptions(common=common)) == 4
    diagnosis = json.loads(capsys.readouterr().out)
    wrong = {each["name"]: each["detail"] for each in diagnosis["checks"] if not each["ok"]}
    assert [*wrong] == ["openvino"]
    assert "pip install 'tunegate[openvino]'" in wrong["openvino"]
