from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.runtime_packages import WHOLE, RuntimePackages
from tests.support.simulated.simulated_gpus import L4
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes import requirements
from tunegate.runtimes.openvino import runtime
from tunegate.runtimes.registry import Installed, installed_runtimes, offer_runtimes
from tunegate.runtimes.requirements import runtime_checks
from tunegate.runtimes.runtime import Loaded
from tunegate.runtimes.tvm import health
from tunegate.runtimes.tvm import runtime as tvm_runtime
from tunegate.system.machine.device_lock import claim_on, held_device
from tunegate.system.output.artifact_file import ArtifactFile


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimePackages:
    def without_compilers() -> Installed:
        """Their checks start a compiler."""
        found = installed_runtimes()
        return found._replace(runtimes=found.runtimes[1:])

    monkeypatch.setattr(requirements, "installed_runtimes", without_compilers)
    return RuntimePackages(tmp_path, monkeypatch)


def test_each_runtime_has_a_line_with_its_versions(packages: RuntimePackages) -> None:
    packages.install(
        "fast", WHOLE.format(name="fast").replace("return {}", 'return {"a": "1", "b": "2"}')
    )
    checks = {check.name: check for check in runtime_checks()}
    assert checks["onnxruntime"].detail.startswith("onnxruntime 1.")
    assert (checks["fast"].ok, checks["fast"].detail) == (True, "a 1, b 2")


def test_no_kernel_disturbs_a_gpu_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEGATE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(health, "compiler_failure", lambda: "")
    monkeypatch.setattr(health, "cuda_variables", lambda: {"CUDA_HOME": "/"})
    monkeypatch.setattr(health, "visible_gpus", lambda: (L4,))
    with held_device(claim_on(L4.uuid, wait_seconds=0)):
        checks = {check.name: check for check in health.compiler_checks([])}
    assert checks["kernel on a GPU"].ok
    assert "not tried. GPU-a: process " in checks["kernel on a GPU"].detail


@pytest.mark.parametrize(
    ("answer", "ok", "detail"),
    [
        ("return {}", True, "not installed"),
        ('return {"a": "", "b": ""}', True, "not installed"),
        ('return {"a": "1", "b": ""}', False, "a 1, without b"),
        ("raise OSError(7)", False, "OSError: 7"),
    ],
)
def test_what_has_no_version_is_not_installed_and_part_of_it_is_not_well(
    packages: RuntimePackages, answer: str, ok: bool, detail: str
) -> None:
    """TVM's has two packages, and the rest of the product asks the versions of both."""
    packages.install("fast", WHOLE.format(name="fast").replace("return {}", answer))
    (check,) = [check for check in runtime_checks() if check.name == "fast"]
    assert (check.ok, check.detail, check.is_absent) == (ok, detail, ok)


def test_a_compiler_that_is_missing_is_called_fine_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tvm_runtime, health):
        monkeypatch.setattr(module, "installed_version", lambda _: "")
    monkeypatch.setattr(health, "compiler_failure", lambda: "No module named 'tvm'")
    found = runtime_checks([TargetConfig(name="cpu")])
    told = {check.name: check for check in found if "tvm" in check.name or "compiler" in check.name}
    assert {name for name, check in told.items() if check.ok} <= {"C compiler"}
    assert "pip install 'tunegate[tvm]'" in told["apache-tvm"].detail


def test_what_cannot_be_used_is_told(packages: RuntimePackages) -> None:
    packages.install("fast", "raise OSError(7)")
    (check,) = [check for check in runtime_checks() if check.name == "runtimes"]
    assert not check.ok
    assert check.detail.endswith("cannot be loaded (OSError: 7)")


def test_those_that_no_target_uses_are_left_out_and_one_that_is_named_is_missed(
    packages: RuntimePackages,
) -> None:
    packages.install("fast", WHOLE.format(name="fast"))
    (named,) = runtime_checks([TargetConfig(name="cpu", runtime="openvino")])
    assert not named.ok
    assert "pip install 'tunegate[openvino]'" in named.detail
    found = {each.name: each for each in runtime_checks([TargetConfig(name="cpu")])}
    assert {"fast", "onnxruntime"} <= {*found}
    openvino = found["openvino"]
    assert (openvino.ok, openvino.is_absent) == (True, True)
    assert openvino.detail == "optional: needs openvino: pip install 'tunegate[openvino]'"


# Which candidates a target has.

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
ONNX_RUNTIME = ["onnxruntime", "onnxruntime-int8", "onnxruntime-int8.dynamic"]
TVM = ["tvm", "tvm-bf16", "tvm-int8.dynamic"]
OURS = [*TVM, *ONNX_RUNTIME]


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have installed them."""
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)


class Precisions:
    """Offers two ways, or fails where `variant` is wrong."""

    name, title = "precisions", "Precisions"

    def __init__(self, variant: str = "half") -> None:
        self._variant = variant

    def unsupported(self, target: TargetConfig) -> str:
        return "is for CPUs" if target.kind == "cuda" else ""

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}, self._variant: {"precision": "float16"}}

    def versions(self) -> Mapping[str, str]:
        return {}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        raise NotImplementedError

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        raise NotImplementedError


def with_another(runtime: Precisions) -> Installed:
    return Installed((*installed_runtimes().runtimes, runtime), ())


def names(target: TargetConfig, installed: Installed) -> list[str]:
    found = offer_runtimes([target], installed).candidates[target.name]
    return [candidate.name for candidate in found]


@pytest.mark.usefixtures("without_extras")
def test_auto_is_all_that_run_on_the_target() -> None:
    assert names(CPU, installed_runtimes()) == OURS
    assert names(GPU, installed_runtimes())[0] == "tvm"


@pytest.mark.usefixtures("without_extras")
def test_each_variant_is_a_candidate_with_settings_and_a_title() -> None:
    found = offer_runtimes([CPU], with_another(Precisions())).candidates["cpu"]
    assert [each.name for each in found] == [*OURS, "precisions", "precisions-half"]
    assert (found[-1].title, found[-1].settings) == ("Precisions (half)", {"precision": "float16"})
    assert [each.name for each in found if each.is_tuned] == TVM


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize("variant", ["a b", "../x", "Half", "-"])
def test_one_that_fails_at_this_is_left_out_and_told(variant: str) -> None:
    found = offer_runtimes([CPU, CPU], with_another(Precisions(variant)))
    assert [each.name for each in found.candidates["cpu"]] == OURS
    (problem,) = found.problems
    assert problem.startswith("precisions is left out (ValueError: its variant ")


@pytest.mark.usefixtures("without_extras")
def test_a_target_may_name_one_and_so_may_a_command() -> None:
    one = TargetConfig(name="cpu", runtime="onnxruntime")
    assert names(one, installed_runtimes()) == ONNX_RUNTIME
    only = offer_runtimes([CPU], installed_runtimes(), only=["onnxruntime"]).candidates["cpu"]
    assert [each.name for each in only] == ONNX_RUNTIME
    with pytest.raises(ConfigError, match="target gpu: runtime onnxruntime is for CPUs"):
        offer_runtimes([GPU], installed_runtimes(), only=["onnxruntime"])


@pytest.mark.usefixtures("without_extras")
def test_a_runtime_that_is_not_installed_says_which_command_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        offer_runtimes([TargetConfig(name="cpu", runtime="openvino")], installed_runtimes())
    assert str(caught.value) == (
        "target cpu: runtime openvino needs openvino: pip install 'tunegate[openvino]'. "
        "Write runtime: auto."
    )


@pytest.mark.usefixtures("without_extras")
def test_a_native_artifact_is_written_by_what_compiles_alone() -> None:
    native = TargetConfig(name="cpu", artifact="native")
    assert {name.partition("-")[0] for name in names(native, installed_runtimes())} == {"tvm"}
    with pytest.raises(ConfigError, match="runtime onnxruntime writes no native artifact"):
        offer_runtimes([native], installed_runtimes(), only=["onnxruntime"])
