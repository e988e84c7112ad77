"""Fresh processes measure operators and the reference, and say why they cannot."""

import math
import re
import sys
import venv
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import onnx
import pytest

from tests.measure.onnx_artifact import artifact
from tests.measure.test_measure_cells import ScriptedBench, ScriptedBenchmarker
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.inputs import ShapedModel
from tunegate.errors import ConfigError, MeasurementError
from tunegate.measure import bench_process as process
from tunegate.measure.bench_driver import FreshProcesses, layers_launch
from tunegate.measure.bench_messages import Sides
from tunegate.measure.bench_process import Devices, Limits
from tunegate.measure.latency_commands import Commands, latencies_ms
from tunegate.measure.measure_cells import operator_times
from tunegate.measure.pair_bench import PairBench
from tunegate.models.light_models import seeded_light
from tunegate.ports import Turns
from tunegate.runtimes.builder import reference_builder
from tunegate.system.processes import memory_limit

IMAGE = (1, 3, 224, 224)


def test_the_operators_of_an_artifact_are_timed_by_the_names_of_its_layers(tmp_path: Path) -> None:
    directory = artifact(tmp_path / "a", seeded_light("squeezenet", seed=1), IMAGE, "data_0")
    times = FreshProcesses(tmp_path, 1).operators_ms(directory)
    assert {"conv1", "fire5/expand3x3"} <= set(times)  # not r1 and r33, the fused activations
    assert all(milliseconds > 0 for milliseconds in times.values())


def test_a_layer_that_differs_is_timed_on_both_sides_in_one_process(tmp_path: Path) -> None:
    base = artifact(tmp_path / "base", seeded_light("squeezenet", seed=1), IMAGE, "data_0")
    after = seeded_light("squeezenet", seed=2)  # other weights make no other layer
    (changed,) = (node for node in after.graph.node if node.name == "fire5/expand3x3")
    changed.attribute.append(onnx.helper.make_attribute("auto_pad", "NOTSET"))
    for number, node in enumerate(after.graph.node):
        node.name = f"{number}_{node.name}"
    head = artifact(tmp_path / "head", after, IMAGE, "data_0")
    found = FreshProcesses(tmp_path, 1).profiled_both(base, head, number=0, turns=Turns(2, 1))
    assert found.differing[0] == {"fire5/expand3x3"}
    assert {name.split("_", 1)[1] for name in found.differing[1]} == found.differing[0]
    launch = layers_launch(found, began=0.0)
    assert 0 < launch.base_ms < launch.whole_ms
    assert set(launch.largest) == found.differing[0] | found.differing[1]
    untimed = msgspec.structs.replace(found, milliseconds=({}, {}))
    with pytest.raises(MeasurementError, match="no layer could be timed"):
        layers_launch(untimed, began=0.0)


def test_an_artifact_that_does_not_run_says_why(tmp_path: Path, small: Path) -> None:
    broken = artifact(tmp_path / "broken", matmul_model(), (16, 16))
    (broken / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(MeasurementError, match=r"(?is)^broken: .*(model|protobuf)"):
        FreshProcesses(tmp_path / "scratch", 1).pair(small, broken).launch(4)


def test_a_process_that_hangs_is_given_up(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MODULE", "tests.support.simulated.hanging_bench")
    with pytest.raises(MeasurementError, match="no answer in 1 s"):
        FreshProcesses(tmp_path, 1, limits=Limits(1.0)).pair(small, small).launch(4)


def test_the_reference_is_measured_from_the_onnx_file(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that measures works in another directory than this one."""
    monkeypatch.chdir(tmp_path)
    bench = FreshProcesses(Path("scratch"), 1, reference=reference_builder)
    assert 0 < bench.reference_ms(ShapedModel(small / "model.onnx", {}), threads=1) < 1000


def test_an_artifact_runs_with_the_packages_of_its_environment_and_our_own_code(
    tmp_path: Path, small: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    (place,) = tmp_path.glob("env/lib/*/site-packages")
    (place / "onnxruntime.py").write_text("raise ImportError('of the environment')")
    for ours in ("tunegate", "tunegate_cache", "msgspec"):
        (place / f"{ours}.py").write_text("raise ImportError('code of ours was taken from it')")
    pythons = {small: tmp_path / "env" / "bin" / "python"}
    with pytest.raises(MeasurementError, match="of the environment"):
        FreshProcesses(tmp_path / "scratch", 1, pythons=pythons).single_ms(small)


# Real commands: small Python programs that print numbers.


def program(text: str) -> str:
    return f'{sys.executable} -c "{text}"'


@pytest.mark.parametrize("odd", ["inf", "-1", "0", "nan", "1.2 s", "10,5", "1_0", "20e309", "５"])
def test_a_number_that_is_no_latency_does_not_drop_out(odd: str) -> None:
    with pytest.raises(MeasurementError, match="printed no latency, a number of mill"):
        latencies_ms(program(f"print(1.5); print('{odd}')"))


def test_a_command_that_prints_nothing_has_no_latency() -> None:
    with pytest.raises(MeasurementError, match="printed no latency"):
        latencies_ms(program("print('fast')"))
    assert latencies_ms(program("print('INFO: loading nanodet'); print(1.5)")) == [1.5]


@pytest.mark.parametrize("text", ["print('fast')", "print('1 s')", "exit('no tok-123456')", "1 +"])
def test_a_message_about_a_command_has_no_secret_of_the_job(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "tok-123456")
    with pytest.raises(MeasurementError, match=r"\*\*\*") as caught:
        latencies_ms(f"{program(text)} --token tok-123456")
    assert "tok-123456" not in str(caught.value)


def test_a_launch_compares_medians_and_a_command_without_any_is_a_mistake(tmp_path: Path) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    lines = {base: program("print(10); print(11); print(12)"), head: program("print(22)")}
    commands = Commands(lines, 1)
    launch = commands.pair(base, head).launch(12)
    assert (launch.base_ms, launch.head_ms) == (11.0, 22.0)
    assert launch.effect == pytest.approx(math.log(2))
    slow = tmp_path / "slow"
    slow.write_text("3")
    lines |= {base: program(f"print(open('{slow}').read())"), head: "true"}
    with pytest.raises(ConfigError, match=r"printed no latency.*: correct it\.$"):
        commands.pair(base, head).launch(12)
    commands.pair(base, base).launch(12)
    slow.write_text("")
    with pytest.raises(MeasurementError, match="printed no latency"):
        commands.pair(base, base).launch(12)


# A process that measures: nothing around it tells the sides apart.


def test_nothing_around_a_process_tells_the_head_from_the_base(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that is free at its start does not tell them apart either, nor does the mark by
    which each is found: it is random, and as long."""
    free = iter(range(64 << 30, 0, -(1 << 30)))
    monkeypatch.setattr(memory_limit, "available_bytes", lambda: next(free))
    bench = PairBench(Sides(small, small), tmp_path, 1, Devices(None))
    with ExitStack() as stack:
        sides = [bench._process(stack, start, {}) for start in bench._starts(7, 0.1)]
        assert all(side.start() > 0 for side in sides)
        around = [Path(f"/proc/{side.pid}") for side in sides]
        for name in ("environ", "cmdline"):
            base, head = (
                re.sub(rb"(TUNEGATE_CHILD=\d+-)[0-9a-f]{16}\0", rb"\1\0", content)
                for content in ((place / name).read_bytes() for place in around)
            )
            assert base == head, name
        assert len({(place / "cwd").resolve() for place in around}) == 1


class SlowingMachine(ScriptedBenchmarker):
    """Every look at a model takes a millisecond more than the one before."""

    def __init__(self) -> None:
        super().__init__(ScriptedBench([]))
        self.looked: list[str] = []

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        self.looked.append(artifact.name)
        return {"conv": 10.0 + len(self.looked), "only-in-" + artifact.name: 1.0}


def test_each_side_has_its_own_operators_and_as_many_looks() -> None:
    machine = SlowingMachine()
    times = operator_times(Path("a"), Path("b"), machine)
    expected = [{"conv", "only-in-a"}, {"conv", "only-in-b"}]
    assert [set(times[side]) for side in ("base", "head")] == expected
    assert machine.looked == ["a", "b", "b", "a"]
