from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save

from tunegate.errors import ConfigError
from tunegate.runtimes.registry import installed_runtimes
from tunegate_study.run.subject import Chosen, choose_cells
from tunegate_study.study_file import parse_study


@pytest.fixture
def models(tmp_path: Path) -> str:
    for name in ("m.onnx", "half.onnx"):
        save(conv_model(), tmp_path / name)
    return f"models: [{{path: {tmp_path}/m.onnx, variants: {{half: {tmp_path}/half.onnx}}}}]\n"


def subject(text: str) -> Chosen:
    return choose_cells(parse_study(text, "study.yaml"), "study.yaml", installed_runtimes())


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as found:
        subject(text)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_all_cells_are_chosen_where_the_budget_has_room(models: str) -> None:
    found = subject(models + "axes: {runtime: [tvm, onnxruntime], tuning: [untuned, 8]}")
    assert (found.design.kind, len(found.cells)) == ("full", 3)
    assert "tvm" in found.compilers
    assert "onnxruntime" not in found.compilers


def test_a_fraction_is_chosen_under_the_cap(models: str) -> None:
    axes = "axes: {runtime: [tvm], variant: [given, half], tuning: [untuned, 8],"
    axes += " threads: [1, 2], layout: [nchw, nhwc]}\n"
    found = subject(models + axes + "budget: {minutes: 500, cells: 8}")
    assert (found.design.kind, found.design.possible, len(found.cells)) == ("fraction", 16, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("axes: {runtime: [tmv]}", "axes.runtime: tmv is not installed. Did you mean tvm?"),
        ("axes: {runtime: [tvm, tensorrt]}", "axes.runtime: tensorrt is for CUDA devices."),
        ("axes: {runtime: [tvm, onnxruntime], precision: [float3]}", "Did you mean float32?"),
        (
            "axes: {algorithm: [direct, im2col]}\ntargets: [{name: gpu, kind: cuda, arch: sm_90}]",
            "axes.algorithm: gpu is a GPU, where convolutions have one form. Remove the axis.",
        ),
        (
            "axes: {runtime: [onnxruntime]}",
            "1 of 1 settings can be measured. Give an axis a second level.",
        ),
        (
            "axes: {runtime: [onnxruntime], precision: [float32, int8]}",
            "(int8 is calibrated, and the inputs of m have no values)",
        ),
        (
            "axes: {runtime: [tvm], tuning: [64, 256]}\nbudget: {minutes: 1}",
            "the main effects of 2 possible ones need 2. Raise minutes to 6, or remove levels.",
        ),
        (
            "axes: {tuning: [untuned, 64], runtime: [tvm]}\nbudget: {minutes: 1, cells: 2}",
            "budget: 2 cells take about 2 minutes, and 1 minutes pay 0. Raise minutes, or write",
        ),
    ],
)
def test_what_cannot_be_studied_is_one_line(models: str, text: str, said: str) -> None:
    assert said in refused(models + text)


def test_a_model_that_is_not_there_is_one_line() -> None:
    assert "none.onnx: no such file" in refused("models: [none.onnx]\naxes: {threads: [1, 2]}")


def test_a_precision_that_the_machine_lacks_is_named_with_what_it_has(
    models: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = installed_runtimes()
    runtime = next(each for each in found.runtimes if each.name == "onnxruntime")

    class Lacking:
        name, title = runtime.name, runtime.title
        unsupported, variants = runtime.unsupported, runtime.variants
        versions, load = runtime.versions, runtime.load

        def lacking(self, settings: dict[str, str]) -> str:
            return "it has avx2 alone" if settings.get("precision") == "int8" else ""

    text = models + "axes: {runtime: [onnxruntime], precision: [float32, int8-dynamic]}"
    others = tuple(Lacking() if each is runtime else each for each in found.runtimes)
    with pytest.raises(ConfigError, match=r"int8-dynamic is not for this machine .*avx2 alone"):
        choose_cells(parse_study(text, "s"), "s", found._replace(runtimes=others))
