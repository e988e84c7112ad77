"""Whether a build is slower than ONNX Runtime is measured once for models with the same kernels."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.small_onnx import conv_model, matmul_model, save
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.compile import handle_request
from tunegate.edges.metaschedule.parts import whole
from tunegate.engine.protocol import BuildModel, Built, InParts, ModelFile


def built(model: Path, place: Path) -> tuple[BuildModel, InParts]:
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
    decided = str(place.parent / "decided")
    return request, InParts(runtime="hybrid", threads=1, decided=decided, whole=request.directory)


@pytest.mark.parametrize("is_slower", [True, False])
def test_other_weights_are_not_measured_again_and_other_kernels_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_slower: bool
) -> None:
    asked: list[int] = []

    def pays(_: object, __: object, threads: int) -> bool:
        asked.append(threads)
        return is_slower

    monkeypatch.setattr(whole, "pays", pays)
    monkeypatch.setattr(whole, "use_threads", lambda _: None)
    models = {"base": conv_model(), "head": conv_model(seed=1), "other": matmul_model()}
    found = {
        name: built(save(model, tmp_path / f"{name}.onnx"), tmp_path / name)
        for name, model in models.items()
    }
    request, how = found["base"]
    assert [whole.is_slower(*found[name]) for name in ("base", "head")] == [is_slower] * 2
    assert asked == [1]
    assert whole.is_slower(*found["other"]) == is_slower
    assert whole.is_slower(request, msgspec.structs.replace(how, threads=2)) == is_slower
    assert asked == [1, 1, 2]
