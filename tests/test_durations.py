from pathlib import Path
from xml.etree import ElementTree

from tests.support.durations import FILE, Durations, is_slow, load, shard
from tests.support.record_durations import node_id, slow_tests

ROOT = FILE.parents[1]
RECORDED = Durations(
    slow=dict.fromkeys(
        ("tests/e2e/", "tests/a.py::test_1[x]", "tests/b.py", "tests/c.py::test_5"), 9
    ),
    smoke={"tests/e2e/test_run.py::test_whole": "a whole run"},
)


def test_a_test_is_slow_by_its_id_its_file_or_its_folder() -> None:
    tests = ["tests/a.py::test_1[x]", "tests/b.py::test_2", "tests/e2e/pages/test_c.py::test_3"]
    assert all(is_slow(test, RECORDED) for test in tests)
    assert is_slow("tests/c.py::test_5[any]", RECORDED)
    assert not is_slow("tests/a.py::test_1[y]", RECORDED)


def test_the_smoke_is_kept() -> None:
    assert not is_slow("tests/e2e/test_run.py::test_whole", RECORDED)


def test_every_test_is_in_one_shard_with_the_others_of_its_file() -> None:
    tests = [f"tests/{file}.py::test_{n}" for file in "abcdefg" for n in range(5)]
    shards = [shard(tests, number, 3, RECORDED) for number in (1, 2, 3)]
    assert sorted(test for each in shards for test in each) == tests
    assert all(len({"b.py" in test for test in each}) == 1 for each in shards)


def test_the_longest_are_slow_until_the_rest_fits() -> None:
    seconds = {"a": 9.0, "b": 5.0, "c": 4.0, "d": 1.0}
    assert slow_tests(seconds, rest=6, smoke=()) == {"a": 9.0, "b": 5.0}
    assert slow_tests(seconds, rest=10, smoke=("a",)) == {"b": 5.0, "c": 4.0}


def test_a_case_of_junit_is_found_by_its_file() -> None:
    case = ElementTree.Element("testcase", classname="tests.test_durations", name="test_1[a.b]")
    assert node_id(case) == "tests/test_durations.py::test_1[a.b]"


def test_what_the_file_names_is_there() -> None:
    durations = load()
    named = {key.split("::")[0] for key in (*durations.slow, *durations.smoke)}
    assert [name for name in sorted(named) if not Path(ROOT, name).exists()] == []
    for test in durations.smoke:
        name = test.split("::")[-1].split("[")[0]
        assert f"def {name}(" in Path(ROOT, test.split("::")[0]).read_text()
