import datetime
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.cli.handlers.cache_shell import Shell
from tests.support.servers.fault_proxy import Fault, fault_proxy
from tests.support.servers.moto_server import BUCKET
from tests.support.servers.other_s3 import no_checksums, no_conditions, only_encrypted, skewed
from tests.support.small_onnx import matmul_model, save
from tests.support.waivers import TODAY
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.cli.commands.starting import DoctorOptions
from tunegate.cli.handlers import doctor
from tunegate.cli.handlers.doctor_checks import budgets_check, known_tasks, waivers_check
from tunegate.cli.shared_options import CacheAddress, Common
from tunegate.config import Config, ModelConfig
from tunegate.project import open_project
from tunegate.review.config_file import parse_config
from tunegate.settings import Settings


def test_an_empty_cache_is_led_to_its_first_run(shell: Shell) -> None:
    diagnosis = shell.cache("doctor")
    assert all(check["ok"] for check in diagnosis["checks"])
    assert diagnosis["next_steps"][0].startswith("the cache is empty: have tunegate.yaml say")
    assert "tunegate warm" in diagnosis["next_steps"][1]
    assert "1. the cache is empty" in shell.shown("doctor")
    shell.configure("targets: [{name: cpu, runtime: onnxruntime}]\n")
    assert shell.cache("doctor")["next_steps"][0].startswith("nothing: no target compiles")


def test_a_bucket_that_is_not_there_is_said_with_what_to_check(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    shell.url = "s3://no-such-bucket-here/x"
    shell.configure(f"  endpoint-url: {endpoint}\n  region: us-east-1\n")
    diagnosis = shell.cache("doctor", code=4)
    assert "NoSuchBucket" in diagnosis["checks"][0]["detail"]
    assert "check the bucket's name" in diagnosis["next_steps"][0]
    assert "Run tunegate cache doctor" in shell.shown("stats", code=4)


def test_a_server_that_takes_no_write_is_said_with_its_cause(
    shell: Shell, endpoint: str, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, steps = _writes(shell, endpoint, only_encrypted("AES256"), code=4)
    assert writes["detail"].startswith("only what is encrypted")
    assert steps[0].startswith("set cache.sse: AES256")
    writes, _ = _writes(shell, endpoint, only_encrypted("AES256"), "  sse: AES256\n")
    assert writes["ok"]
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
    writes, steps = _writes(shell, endpoint, no_checksums, code=4)
    assert writes["detail"] == "s3://tuning: NotImplemented"
    assert "AWS_REQUEST_CHECKSUM_CALCULATION=when_required" in steps[0]


def test_a_server_without_conditions_and_a_wrong_clock_are_said(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    _, steps = _writes(shell, endpoint, no_conditions)
    assert any("does not implement If-None-Match" in step for step in steps)
    writes, steps = _writes(shell, endpoint, skewed(62), code=4)
    assert "62 minutes ahead" in writes["detail"]
    assert steps[0].startswith("set the clock")


def _writes(
    shell: Shell, endpoint: str, fault: Fault, more: str = "", code: int = 0
) -> tuple[dict[str, Any], list[str]]:
    """The check of writing through a server with this fault, and the steps to take."""
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", fault)
        shell.url = f"s3://{BUCKET}/other"
        shell.configure(f"  endpoint-url: {url}\n  region: us-east-1\n{more}")
        diagnosis = shell.cache("doctor", code=code)
    checks = {check["name"]: check for check in diagnosis["checks"]}
    return checks.get("writes") or checks["reads what was written"], diagnosis["next_steps"]


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
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, as_json=True))) == 2
    diagnosis = json.loads(capsys.readouterr().out)
    sizes = [(each["symbol"], each["size"], each["source"]) for each in diagnosis["sizes"]]
    assert sizes == [("m", 3, "dims"), ("n", None, "")]
    (wrong,) = [check["detail"] for check in diagnosis["checks"] if check["name"] == "shapes"]
    assert wrong.startswith('models/n.onnx: dimension "n" (axis 0 of x) is dynamic.')
    expected = ["changed since the commit", "not committed yet"]
    assert [each["state"] for each in diagnosis["models"]] == expected


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
    assert doctor.run(DoctorOptions(common=msgspec.structs.replace(common, quiet=True))) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("configuration: ")
    url = "s3://me:password@bucket/a?sig=abc"
    workspace.write("tunegate.yaml", f'models: [{{path: "*.onnx"}}]\ncache: {{url: "{url}"}}\n')
    assert doctor.run(DoctorOptions(common=common)) == 2
    assert "s3://***@bucket/a?sig=***" in "".join(capsys.readouterr().out.split())


def test_what_a_run_would_refuse_is_named_at_once_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    more = "models:\n  - path: modles/*.onnx\n  - path: b.onnx\n"
    workspace.write("tunegate.yaml", NOT_COMPILED.replace("models:\n", more))
    workspace.write("models/m.onnx", "nonsense")
    workspace.write("tunegate-waivers.yaml", "waivers: 3\n")
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, quiet=True))) == 2
    starts = [line[:30] for line in capsys.readouterr().out.splitlines()]
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


def test_names_in_a_checkout_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = Workspace(tmp_path / "w [" / "b]", NOT_COMPILED)
    (workspace.root / "models" / "m.onnx").rename(workspace.root / "models" / "[tvm].onnx")
    workspace.commit()
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root))) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert "w[/b]/tunegate.yaml" in shown
    assert "Alliswell." in shown or "Nothingisbroken.Lookat:load" in shown
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, verbose=True))) == 0
    assert "models/[tvm].onnx" in "".join(capsys.readouterr().out.split())


def test_a_runtime_that_a_target_names_is_missed_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED.replace("onnxruntime", "openvino"))
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, as_json=True))) == 4
    diagnosis = json.loads(capsys.readouterr().out)
    wrong = {each["name"]: each["detail"] for each in diagnosis["checks"] if not each["ok"]}
    assert [*wrong] == ["openvino"]
    assert "pip install 'tunegate[openvino]'" in wrong["openvino"]


ENTRY = "models: [{{path: m.onnx, accuracy: {accuracy}, inputs: {{x: {{values: {values}}}}}}}]"


@pytest.mark.parametrize(
    ("accuracy", "values", "told"),
    [
        ("{max-error: 2}", "{file: x.npy}", "m.onnx: 1 case is given, and .* takes 59 cases"),
        ("{min-agreement: 98}", "{cases: [a.npy, b.npy]}", "2 cases are given, .* takes 149 cases"),
        ("{max-error: 2}", "{low: 0, high: 1}", ""),
        ("same", "{file: x.npy}", ""),
        ("{max-error: 2}", f"{{cases: {[f'{n}.npy' for n in range(59)]}}}", ""),
    ],
)
def test_too_few_cases_for_a_budget_are_told(accuracy: str, values: str, told: str) -> None:
    config = parse_config(ENTRY.format(accuracy=accuracy, values=values), "tunegate.yaml")
    found = [each.detail for each in budgets_check(config, ["m.onnx"])]
    assert len(found) == bool(told)
    if told:
        assert re.search(told, found[0])


@pytest.mark.parametrize("content", [None, np.ones((1, 3, 14, 14), np.float32)])
def test_values_that_are_missing_or_of_another_shape_are_not_well(
    content: np.ndarray | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "*.onnx\n    inputs: {x: {values: {file: x.npy}}}\n"
    workspace = Workspace(tmp_path / "w", NOT_COMPILED.replace("*.onnx\n", given))
    if content is not None:
        np.save(workspace.root / "x.npy", content)
        workspace.commit()
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, quiet=True))) == 2
    said = "no such file" if content is None else "shape [1, 3, 14, 14] instead of [1, 16, 14, 14]"
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("files: ")
    assert said in line


CONFIG = Config(models=(ModelConfig(path="m.onnx"),))
WAIVER = "{model: m.onnx, target: %s, ceiling-percent: 8, expires: 2026-07-20, issue: i, reason: r}"


def checks(root: Path, body: bytes) -> list[tuple[bool, str]]:
    (root / "tunegate-waivers.yaml").write_bytes(body)
    return [(each.ok, each.detail) for each in waivers_check(root, CONFIG, ["m.onnx"], TODAY)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff", "not UTF-8"),
        (f"waivers: [{WAIVER % 'nowhere'}]".encode(), "the model has no target nowhere"),
    ],
)
def test_what_cannot_be_used_is_a_problem(tmp_path: Path, body: bytes, said: str) -> None:
    (found,) = checks(tmp_path, body)
    assert not found[0]
    assert found[1].startswith("tunegate-waivers.yaml: ")
    assert said in found[1]


def test_a_file_that_is_too_large_says_so(tmp_path: Path) -> None:
    (found,) = checks(tmp_path, b"# " + b"x" * 2**20)
    assert found == (
        False,
        "tunegate-waivers.yaml: over 1 MB, which is not read here. Remove what has expired.",
    )


def test_the_tasks_of_the_first_models_are_counted_and_nothing_is_written(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    settings = Settings(repository=workspace.root)
    project = open_project(settings)
    (found,) = known_tasks(project, settings, most=1)
    assert (found.model, found.target, found.known) == ("models/m.onnx", "cpu", 0)
    assert found.tasks > 0
    assert known_tasks(project, settings, most=0) == ()
    assert not (workspace.root / ".tunegate").exists()


def test_a_model_with_operators_of_a_library_is_told_and_the_others_are_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    model = matmul_model()
    model.graph.node[0].op_type, model.graph.node[0].domain = "Inverse", "ai.onnx.contrib"
    save(model, workspace.root / "models" / "custom.onnx")
    workspace.commit()
    assert doctor.run(DoctorOptions(common=Common(repository=workspace.root, as_json=True))) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    (told,) = [check["detail"] for check in checks if check["name"] == "custom operators"]
    named = "models/custom.onnx uses ai.onnx.contrib:Inverse, of a library that nothing names"
    assert told.startswith(named)
    assert "custom-operators: [{library: onnxruntime_extensions, sha256: " in told
