from tests.support.tuning_tasks import make_task
from tunegate.tune.model_keys import model_keys

CONV, DENSE = make_task("conv"), make_task("dense")
M = ("m.onnx", "cpu")


def test_other_tasks_other_weights_and_another_version_have_another_key() -> None:
    keys = [
        model_keys(tasks, version)[M]["head"]
        for tasks, version in (
            ([CONV, DENSE], "1"),
            ([CONV], "1"),
            ([make_task("conv", weight=2), DENSE], "1"),
            ([CONV, DENSE], "2"),
        )
    ]
    assert len(set(keys)) == 4


def test_each_side_has_a_key_on_each_target() -> None:
    both = make_task("conv", sides=("base", "head"))
    keys = model_keys([both, make_task("conv", target="gpu")], "1")
    expected = {M: {"base", "head"}, ("m.onnx", "gpu"): {"head"}}
    assert {where: set(sides) for where, sides in keys.items()} == expected
    assert keys[M]["base"] == keys[M]["head"]
    assert keys[M]["head"].target == both.key.target
