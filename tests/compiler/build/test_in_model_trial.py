"""What is slower kernel by kernel is dropped where the model as a whole is no faster with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compiler.build.test_build_model import Workshop, source_of
from tunegate.compiler.build import build_model as linked_build
from tunegate.compiler.build import in_model_trial
from tunegate.compiler.loader import is_faster_whole
from tunegate.system.output.artifact_file import ArtifactFile


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("trial"))


def test_a_kernel_that_is_slower_by_itself_stays_where_the_model_is_faster_with_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is remembered, too: a build in another precision does not drop it."""
    monkeypatch.setattr(
        in_model_trial, "slower_in_model", lambda *_, kernels, **__: frozenset(kernels)
    )
    monkeypatch.setattr(in_model_trial, "is_faster_whole", lambda *_, **__: True)
    for name in ("first", "again"):
        built = workshop.build(name, workshop.record(), source="search")
        assert (built.dropped, source_of(built)) == ((), "search")
        assert ArtifactFile.read(workshop.directory / name).key == built.key


def test_of_two_builds_the_faster_one_is_told(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops as they are written take tens of times as long as any schedule."""
    for each in ("with_default_schedule", "with_packing_schedules"):
        monkeypatch.setattr(linked_build, each, lambda module, *_: module)
    workshop.build("plain")
    workshop.build("fast", workshop.record())
    fast, plain = (workshop.directory / name / "model.so" for name in ("fast", "plain"))
    inputs = ArtifactFile.read(plain.parent).inputs

    def is_faster(one: Path, other: Path) -> bool:
        return is_faster_whole(one, other, inputs=inputs, seed=1)

    assert is_faster(fast, plain)
    assert not is_faster(plain, fast)
