"""A build is checked, and mended where it computes other numbers."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import NumericCheck
from tunegate.config import TargetConfig
from tunegate.runtimes.tvm.compile_requests import MAX_MENDING_SECONDS, questions_after_build
from tunegate.tune.compiler_protocol import BuildModel, Built, CheckArtifact, Checked, MendBuild
from tunegate.tune.protocol import ModelFile

BUILD = BuildModel(
    model=ModelFile(file="m.onnx", path="m.onnx", shapes={}),
    target=TargetConfig(name="cpu"),
    records={},
    sources={},
    directory="out",
    scratch="scratch",
    seed=1,
)
BUILT = Built(key="k", reference="ref", functions=(), size_bytes=1, seconds=1.0)
RIGHT = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.1)
WRONG = msgspec.structs.replace(RIGHT, passed=False, detail="off by 3")
CHECK = CheckArtifact(directory="out", reference="ref", kind="llvm", seeds=(1, 2))


def test_a_build_is_checked_and_nothing_more_is_asked_where_it_is_right() -> None:
    ask = questions_after_build(BUILD, seeds=(1, 2), limit_seconds=900.0)
    assert ask(BUILT) == CHECK
    assert ask(Checked(RIGHT)) is None
    assert ask(Checked()) is None


def test_a_build_in_other_numbers_tells_its_error_in_place_of_a_check() -> None:
    ask = questions_after_build(BUILD, seeds=(1, 2), samples=(7, 8), limit_seconds=900.0)
    asked = ask(BUILT)
    assert isinstance(asked, CheckArtifact)
    assert asked.samples == (7, 8)
    assert ask(Checked()) is None


def test_a_build_that_computes_other_numbers_is_mended_in_half_the_time() -> None:
    for limit, seconds in ((60.0, 30.0), (900.0, MAX_MENDING_SECONDS)):
        ask = questions_after_build(BUILD, seeds=(1, 2), limit_seconds=limit)
        ask(BUILT)
        assert ask(Checked(WRONG)) == MendBuild(build=BUILD, check=CHECK, limit_seconds=seconds)
