"""The lock that a job's environment is made from."""

from pathlib import Path

import pytest

from tunegate_environment.locks import lock_for, only_runtime

LOCKS = Path(__file__).resolve().parents[2] / "requirements"
ALONE = """\
models:
  - path: models/*.onnx
targets:
  # the processors of our servers
  - name: small
    runtime: onnxruntime  # as in production
    runner: [self-hosted, linux]
  - runtime: "onnxruntime"
    name: large
    runner:
      - self-hosted

gate:
  margin-percent: 3
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_machine_with_a_gpu_gets_what_a_gpu_needs(checkout: Path) -> None:
    assert lock_for(LOCKS, {}, checkout / "missing").name == "run.lock"
    assert lock_for(LOCKS, {}, checkout).name == "gpu.lock"
    assert lock_for(LOCKS, {"TUNEGATE_LOCK": "/mine.lock"}, checkout) == Path("/mine.lock")


def test_what_compiles_is_left_out_where_every_target_is_onnx_runtimes(checkout: Path) -> None:
    (checkout / "tunegate.yaml").write_text(ALONE)
    narrow = LOCKS / "run-onnxruntime.lock"
    assert lock_for(LOCKS, {}, checkout) == narrow
    assert lock_for(LOCKS, {"TUNEGATE_ENVIRONMENT": "everything"}, checkout).name == "gpu.lock"
    assert lock_for(LOCKS, {"TUNEGATE_CONFIG": "other.yaml"}, checkout).name == "gpu.lock"
    (checkout / "tunegate.yaml").write_text(ALONE.replace("onnxruntime", "auto"))
    assert lock_for(LOCKS, {}, checkout).name == "gpu.lock"
    (checkout / "other.yaml").symlink_to("tunegate.yaml")
    assert lock_for(LOCKS, {"TUNEGATE_CONFIG": "other.yaml"}, checkout).name == "gpu.lock"


@pytest.mark.parametrize(
    "config",
    [
        "",
        "models: []\n",
        "targets: []\n",
        "targets:\n",
        ALONE.replace("    runtime: onnxruntime  # as in production\n", ""),
        ALONE.replace('"onnxruntime"', "auto"),
        ALONE.replace('"onnxruntime"', "onnxruntime_gpu"),
        ALONE.replace('"onnxruntime"', '"onnxruntime'),
        ALONE.replace("    runtime: onnxruntime", "    # runtime: onnxruntime"),
        ALONE.replace("targets:\n", "targets: &all\n"),
        "targets: [{name: a, runtime: onnxruntime}]\n",
        "targets:\n  - {name: a, runtime: onnxruntime}\n",
        "other:\n  runtime: onnxruntime\n",
    ],
)
def test_whatever_is_not_plain_gets_everything(config: str) -> None:
    assert not only_runtime(config)


def test_the_plain_ways_are_understood() -> None:
    one = "targets:\n- name: a\n  runtime:"
    assert only_runtime(ALONE) == "onnxruntime"
    assert only_runtime(f"{one} onnxruntime") == "onnxruntime"
    assert only_runtime(f"{one} 'onnxruntime'\nmodels: []\n") == "onnxruntime"
    assert only_runtime(f"{one} auto") == "auto"


def test_the_narrow_lock_has_the_versions_of_the_full_one_and_no_compiler() -> None:
    full, narrow = (pins(LOCKS / name) for name in ("run.lock", "run-onnxruntime.lock"))
    assert narrow < full
    expected = {"apache-tvm", "apache-tvm-ffi", "xgboost-cpu"}
    assert {line.partition("==")[0] for line in full - narrow} == expected


def pins(lock: Path) -> set[str]:
    return {line.rstrip(" \\") for line in lock.read_text().splitlines() if line[:1].isalpha()}
