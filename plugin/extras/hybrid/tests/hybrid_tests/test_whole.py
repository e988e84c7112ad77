"""Whether a build is slower than ONNX Runtime is measured once for models with the same kernels."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.support.small_onnx import conv_model, matmul_model, save

from tunegate.compiler.compile import handle_request
from tunegate.config import TargetConfig
from tunegate.tune.compiler_protocol import BuildModel, Built
from tunegate.tune.protocol import ModelFile
from tunegate_hybrid import whole
from tunegate_hybrid.messages import BuildParts


def built(model: Path, place: Path) -> BuildParts:
    """A build that is compiled whole, as its parts are asked for."""
    place.mkdir()
    request = BuildModel(
        model=ModelFile(file=str(model), path="m.onnx", shapes={}),
        target=TargetConfig(name="cpu", threads=1),
        records={},
        sources={},
        directory=str(place / "out"),
        scratch=str(place),
        seed=1,
    )
    assert isinstance(handle_request(request), Built)
    return BuildParts(
        build=request, runtime="hybrid", threads=1, decided="", whole=request.directory
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BuildParts]:
    place = tmp_path_factory.mktemp("built")
    models = {"base": conv_model(), "head": conv_model(seed=1), "other": matmul_model()}
    return {
        name: built(save(model, place / f"{name}.onnx"), place / name)
        for name, model in models.items()
    }


@pytest.mark.parametrize("is_slower", [True, False])
def test_other_weights_are_not_measured_again_and_other_kernels_are(
    found: dict[str, BuildParts],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_slower: bool,
) -> None:
    asked: list[int] = []

    def pays(_: object, __: object, threads: int) -> bool:
        asked.append(threads)
        return is_slower

    monkeypatch.setattr(whole, "pays", pays)
    monkeypatch.setattr(whole, "use_threads", lambda _: None)

    def decided(name: str, threads: int = 1) -> bool:
        here = str(tmp_path / "decided")
        return whole.is_slower(msgspec.structs.replace(found[name], threads=threads, decided=here))

    assert [decided(name) for name in ("base", "head")] == [is_slower] * 2
    assert asked == [1]
    assert decided("other") == is_slower
    assert decided("base", threads=2) == is_slower
    assert asked == [1, 1, 2]
