from __future__ import annotations

from tests.support.measured_cells import MODEL, make_version
from tests.support.models.outlines import Outlines
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.review.compared_work import AskedWork

BEFORE, AFTER = make_version("b"), make_version("h")
OPEN = Outlines(None, 8, symbols=("batch", ""))


def config(*, batch: int = 1, covers: str = "**", **profiles: int) -> Config:
    named = {name: ProfileConfig(dims={"batch": size}) for name, size in profiles.items()}
    return Config(models=(ModelConfig(path=covers, profiles=named),), dims={"batch": batch})


def former(old: Config, new: Config, name: str, reader: Outlines = OPEN) -> str | None:
    return AskedWork(reader, new, old).former_name(name, AFTER, BEFORE)


def test_a_profile_is_itself_by_its_name() -> None:
    assert former(config(a=1), config(a=2), f"{MODEL}@a") == f"{MODEL}@a"


def test_a_profile_of_another_name_is_itself_by_its_shapes() -> None:
    assert former(config(a=4), config(b=4), f"{MODEL}@b") == f"{MODEL}@a"
    assert former(config(batch=4), config(b=4), f"{MODEL}@b") == MODEL
    assert former(config(a=4), config(b=5), f"{MODEL}@b") is None
    assert former(config(a=4), config(b=4), f"{MODEL}@b", Outlines()) is None


def test_a_model_that_was_not_covered_had_every_profile() -> None:
    assert former(config(covers="no"), config(b=4), f"{MODEL}@b") == f"{MODEL}@b"


def test_only_other_shapes_are_another_question() -> None:
    by_shape = Config(models=(ModelConfig(path="**", inputs={"x": (4, 8)}),))
    for new, is_changed in ((config(batch=4), False), (config(batch=5), True)):
        asked = AskedWork(OPEN, new, by_shape)
        assert asked.is_changed(MODEL, MODEL, AFTER) is is_changed
    assert AskedWork(Outlines(), config(batch=4), by_shape).is_changed(MODEL, MODEL, AFTER)
