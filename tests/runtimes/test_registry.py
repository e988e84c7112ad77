"""The runtimes that are used, their order, and those that cannot be."""

from pathlib import Path

import pytest

from tests.plugins.registered_plugin import register
from tests.support.runtime_packages import WHOLE, RuntimePackages
from tunegate.artifacts.candidates import cuda_variants
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.runtimes import registry

OURS = ["tvm", "onnxruntime", "onnxruntime_cuda", "openvino", "tensorrt"]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimePackages:
    return RuntimePackages(tmp_path, monkeypatch)


def names() -> list[str]:
    return [each.name for each in registry.installed_runtimes().runtimes]


def test_the_one_that_tunes_comes_first_and_others_come_after_ours_by_name(
    environment: RuntimePackages,
) -> None:
    assert names() == OURS
    environment.install("fast", WHOLE.format(name="fast"), "a-1.0")
    environment.install("aged", WHOLE.format(name="aged"), "b-1.0")
    assert names() == [*OURS, "aged", "fast"]
    assert registry.installed_runtimes().problems == ()
    assert registry.runtime_named("fast").title == "Example"


def test_each_one_tunes_or_saves() -> None:
    tuning, *others = registry.installed_runtimes().runtimes
    assert (registry.tunes(tuning), registry.saves(tuning)) == (True, False)
    for each in others:
        assert (registry.tunes(each), registry.saves(each)) == (False, True)
    assert registry.installed_runtimes().tuning is tuning


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("RUNTIME =", "raise OSError(1) #", "cannot be loaded (OSError: 1)"),
        ("RUNTIME =", "raise SystemExit(1) #", "cannot be loaded (SystemExit: 1)"),
        ("RUNTIME = Runtime()", "RUNTIME = None", "has no name"),
        ("    def load(", "    def open(", "has no load"),
        ("    def save(", "    def write(", "has no save"),
        ('"fast", "Example"', '"fast", None', "has no title"),
        ('"fast", "Example"', '"tvm", "TVM"', "calls itself 'tvm', and is registered as 'fast'"),
    ],
)
def test_one_that_is_broken_is_left_out_with_a_line(
    environment: RuntimePackages, before: str, after: str, said: str
) -> None:
    environment.install("fast", WHOLE.format(name="fast").replace(before, after))
    assert names() == OURS
    (problem,) = registry.installed_runtimes().problems
    assert problem.startswith("example 1.0: ")
    assert problem.endswith(said)
    with pytest.raises(ConfigError, match="runtimes: example 1"):
        registry.runtime_named("fast")


def test_a_name_that_two_packages_register_is_neithers(environment: RuntimePackages) -> None:
    environment.install("fast", WHOLE.format(name="fast"), "a-1.0")
    environment.install("fast", WHOLE.format(name="fast"), "b-2.0")
    assert names() == OURS
    (problem,) = registry.installed_runtimes().problems
    assert problem == 'a 1.0 and b 2.0 both register "fast". Uninstall one of them.'


def test_a_name_of_ours_is_taken(environment: RuntimePackages) -> None:
    environment.install("tvm", WHOLE.format(name="tvm"))
    assert names() == OURS
    assert registry.installed_runtimes().runtimes[0].title == "TVM"
    assert registry.installed_runtimes().problems == (
        'example 1.0: the name "tvm" is taken, and it is left out',
    )


@pytest.mark.parametrize("name", ["Fast", "fast-half", "..", "f/g"])
def test_a_name_that_files_and_commands_cannot_take_is_refused(
    environment: RuntimePackages, name: str, tmp_path: Path
) -> None:
    (tmp_path / "named_oddly.py").write_text(WHOLE.format(name=name))
    register(tmp_path, "example-1.0", "tunegate.runtimes", name, "named_oddly:RUNTIME")
    (problem,) = registry.installed_runtimes().problems
    assert f"has the name {name!r}" in problem


def test_one_that_is_not_installed_is_told_with_those_that_are() -> None:
    with pytest.raises(
        ConfigError, match=r"^runtime fast is not installed\. Installed: .*onnxruntime, .*tvm"
    ):
        registry.runtime_named("fast")


GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def test_the_usual_variant_is_float32_and_graphs_are_the_targets_choice() -> None:
    assert cuda_variants(GPU)[""] == {"launch": "graph"}
    without = TargetConfig(name="gpu", kind="cuda", arch="sm_90", cuda_graphs=False)
    assert cuda_variants(without)[""] == {}


def test_tf32_is_a_precision_of_its_own() -> None:
    found = cuda_variants(GPU, {"int8": {"precision": "int8"}})
    expected = [None, "tfloat32", "float16", "int8"]
    assert [each.get("precision") for each in found.values()] == expected


@pytest.mark.parametrize(
    ("runtimes", "compiles"),
    [(["auto"], True), (["tvm"], True), (["onnxruntime"], False), (["onnxruntime", "tvm"], True)],
)
def test_only_targets_that_may_be_compiled_have_something_to_tune(
    runtimes: list[str], compiles: bool
) -> None:
    targets = [TargetConfig(name=name, runtime=name) for name in runtimes]
    assert registry.may_compile(targets) is compiles
