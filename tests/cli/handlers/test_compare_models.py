from pathlib import Path

import msgspec
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.support import report_parts as parts
from tests.support.measured_cells import make_model
from tests.support.small_onnx import conv_model, matmul_model, model_of, save
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.artifacts.verdicts import WarmedModel
from tunegate.cli.commands.gating import CompareOptions
from tunegate.cli.handlers import compare, compare_environments, compare_models
from tunegate.cli.handlers.cache_why_miss import task_names, tasks_named
from tunegate.cli.handlers.compare import run
from tunegate.cli.handlers.doctor_checks import gated_models, left_to_do, with_tasks
from tunegate.cli.handlers.run import what_to_do
from tunegate.cli.shared_options import Common
from tunegate.config import CacheConfig, Config, ModelConfig, ProfileConfig, TargetConfig
from tunegate.errors import ConfigError, ModelError
from tunegate.measure.bench_messages import Sides
from tunegate.models.finder import FoundModel
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named
from tunegate.settings import Settings
from tunegate.system.processes.runtime_environment import RuntimeEnvironment
from tunegate_cache.stores.files import FileStore


def saved(path: Path, **what: int) -> Path:
    save(matmul_model(**what), path)
    return path


def alike(base: compare_models.Model | compare_models.Artifact, head: compare_models.Model) -> bool:
    both = compare_models.AgainstModel(base, head)
    return compare_models.is_one_model(both, compare_models.pair_files(both))


def test_it_is_one_where_content_and_runtime_are_the_same(tmp_path: Path) -> None:
    first, copy = saved(tmp_path / "a.onnx"), saved(tmp_path / "b.onnx")
    assert alike(compare_models.Model(first), compare_models.Model(first))
    assert alike(compare_models.Model(first, "tvm"), compare_models.Model(copy, "tvm"))
    assert not alike(compare_models.Model(first, "tvm"), compare_models.Model(first, "onnxruntime"))
    assert not alike(compare_models.Artifact(tmp_path), compare_models.Model(first))


def test_the_data_of_a_model_is_part_of_it(tmp_path: Path) -> None:
    files = []
    for name, value in (("one", 1.0), ("two", 2.0)):
        model = matmul_model()
        for tensor in model.graph.initializer:
            values = onnx.numpy_helper.to_array(tensor) * value
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "m.onnx")
        onnx.save(model, files[-1], save_as_external_data=True, location="m.data", size_threshold=0)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not alike(compare_models.Model(files[0]), compare_models.Model(files[1]))
    files[0].with_name("m.data").unlink()
    with pytest.raises(ModelError, match=r"m\.data: no such file"):
        alike(compare_models.Model(files[0]), compare_models.Model(files[1]))


def test_what_is_no_model_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"words")
    with pytest.raises(ModelError):
        alike(compare_models.Model(tmp_path / "a.onnx"), compare_models.Model(tmp_path / "a.onnx"))


def test_nothing_of_one_model_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(saved(tmp_path / "a.onnx"))
    common = Common(repository=tmp_path, out=tmp_path / "out")
    assert compare.run(CompareOptions(common=common, base=model, head=model)) == 0
    assert "Pass: nothing to compare: base and head are the same" in capsys.readouterr().err
    assert not (tmp_path / "out" / "builds").exists()
    model_itself = compare_models.Model(Path(model))
    assert compare_models.no_changes(
        compare_models.AgainstModel(model_itself, model_itself)
    ).unchanged == ("a.onnx",)


def test_files_are_models_and_a_prefix_says_what_runs_them() -> None:
    assert compare_models.parse_operands("a.onnx", "tvm:b.onnx") == compare_models.AgainstModel(
        compare_models.Model(Path("a.onnx")), compare_models.Model(Path("b.onnx"), "tvm")
    )
    assert compare_models.parse_operands(
        "onnxruntime:a.onnx", "a.onnx"
    ).base == compare_models.Model(Path("a.onnx"), "onnxruntime")


def test_directories_are_artifacts(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert compare_models.parse_operands(str(one), str(other)) == compare_models.Artifacts(
        one, other
    )
    with pytest.raises(ConfigError, match="Give both as ONNX files, or both as artifacts"):
        compare_models.parse_operands("b.onnx", str(one))
    assert compare_models.parse_operands(str(one), "b.onnx") == compare_models.AgainstModel(
        compare_models.Artifact(one), compare_models.Model(Path("b.onnx"))
    )


@pytest.mark.parametrize("address", ["oci://a/b:1", "https://u:secret@h/m.onnx?k=v", "models:/a/1"])
def test_an_address_is_for_the_deploy_gate(address: str) -> None:
    with pytest.raises(ConfigError, match="tunegate deploy-gate") as caught:
        compare_models.parse_operands(address, "b.onnx")
    assert "secret" not in str(caught.value)
    assert "k=v" not in str(caught.value)


# The configuration that a comparison makes of the one of its repository.


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose input has an open batch, in a repository that says its size."""
    node, shape = helper.make_node("Relu", ["x"], ["y"]), ["batch", 3]
    (tmp_path / "tunegate.yaml").write_text("models: [{path: models/*.onnx, dims: {batch: 4}}]\n")
    return save(model_of([node], {"x": shape}, {"y": shape}), tmp_path / "models/m.onnx")


def test_the_sizes_of_the_repositorys_configuration_hold(model: Path) -> None:
    settings = Settings(repository=model.parents[1])
    assert compare_models.comparison_config(settings, "m.onnx", {}, [model]).models[0].inputs == {
        "x": (4, 3)
    }
    other = model.parents[2] / "old.onnx"
    found = compare_models.comparison_config(settings, "m.onnx", {}, [other, model])
    assert found.models[0].inputs == {"x": (4, 3)}
    given = compare_models.comparison_config(settings, "m.onnx", {"x": (2, 3)}, [model])
    assert given.models[0].inputs == {"x": (2, 3)}
    renamed = model_of([helper.make_node("Relu", ["a"], ["y"])], {"a": ["n", 3]}, {"y": ["n", 3]})
    text = "models: [{path: models/n.onnx, dims: {n: 5}}, {path: models/m.onnx, dims: {batch: 4}}]"
    (model.parents[1] / "tunegate.yaml").write_text(text)
    both = [save(renamed, model.with_name("n.onnx")), model]
    config = compare_models.comparison_config(settings, "n.onnx", {}, both)
    assert config.models[0].inputs == {"a": (5, 3), "x": (4, 3)}


def test_a_size_that_nobody_gave_names_the_option_on_either_side(model: Path) -> None:
    """A file elsewhere has no entry in tunegate.yaml."""
    shape = [1, 3]
    fixed = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": shape}, {"y": shape})
    head = save(fixed, model.parents[1] / "head.onnx")
    (model.parents[1] / "tunegate.yaml").write_text("models: [{path: others/*.onnx}]\n")
    for files in ([model], [head, model]):
        with pytest.raises(ConfigError, match=r"m\.onnx: the shape of x is open.* --shape x=1,3"):
            compare_models.comparison_config(
                Settings(repository=model.parents[1]), "m.onnx", {}, files
            )


CONFIG = Config(
    models=(
        ModelConfig(path="a.onnx", profiles={"one": ProfileConfig(), "two": ProfileConfig()}),
        ModelConfig(path="*.onnx"),
    ),
    targets=(TargetConfig(name="cpu"),),
)


def test_each_profile_of_a_model_is_one_by_the_entry_that_gates_it() -> None:
    found = gated_models(CONFIG, [FoundModel(path="a.onnx"), FoundModel(path="b.onnx")], ["b.onnx"])
    expected = [("a.onnx@one", "a.onnx"), ("a.onnx@two", "a.onnx"), ("b.onnx", "*.onnx")]
    assert [(each.model, each.entry) for each in found] == expected
    assert [each.state for each in found] == ["committed"] * 2 + ["changed since the commit"]


def test_what_is_left_to_do_is_counted() -> None:
    models = gated_models(CONFIG, [FoundModel(path="b.onnx", is_committed=False)], [])
    known = WarmedModel(model="b.onnx", target="cpu", tasks=3, known_before=2, known=2)
    assert list(left_to_do(with_tasks(models, [known]))) == [
        "1 model not committed as here: tunegate sees commits alone",
        "1 task is untuned: tunegate warm tunes what matters",
    ]
    assert list(left_to_do(gated_models(CONFIG, [FoundModel(path="b.onnx")], []))) == []


UNCHANGED = ChangeSet(
    revisions=Revisions(base="a" * 40, head="b" * 40, reason="asked"),
    models=(),
    unchanged=("a.onnx", "b.onnx"),
)


def notes(cache: CacheConfig, root: Path) -> tuple[str, ...]:
    config = Config(models=(ModelConfig(path="*.onnx"),), cache=cache)
    return what_to_do(config, UNCHANGED, root).notes


def test_a_change_of_rules_is_not_told_of_the_cache(tmp_path: Path) -> None:
    change = parts.policy_change(key="tunegate-waivers.yaml", old="no waiver", new="up to +9%")
    changes = msgspec.structs.replace(UNCHANGED, policy_changes=(change,))
    config = Config(models=(ModelConfig(path="*.onnx"),), cache=CacheConfig(url="cache"))
    assert what_to_do(config, changes, tmp_path) == changes


def test_what_a_full_one_knows_is_a_question_for_the_doctor(tmp_path: Path) -> None:
    FileStore(tmp_path / "cache").write("ms1/z/main/g/a", b"")
    (note,) = notes(CacheConfig(url="cache"), tmp_path)
    assert (
        note == "nothing was tuned: tunegate doctor says what the cache knows of the 2 models here"
    )


@pytest.mark.parametrize(("runtime", "fills"), [("auto", True), ("onnxruntime", False)])
def test_compiled_builds_alone_fill_an_empty_one(runtime: str, fills: bool, tmp_path: Path) -> None:
    targets = (TargetConfig(name="cpu", runtime=runtime),)
    config = Config(models=(), cache=CacheConfig(url="cache"), targets=targets)
    said = "the cache has nothing yet: tunegate warm tunes what the 2 models here need"
    assert what_to_do(config, UNCHANGED, tmp_path).notes == ((said,) if fills else ())


@pytest.mark.parametrize("cache", [CacheConfig(mode="off"), CacheConfig(url="gopher://b/p")])
def test_a_cache_that_is_off_or_no_cache_is_no_trouble(cache: CacheConfig, tmp_path: Path) -> None:
    assert notes(cache, tmp_path) == ()


def task(workload: str, model: str, name: str) -> TuningTask:
    use = TaskUse(model=model, side="head", weight=1, name=name)
    return msgspec.structs.replace(make_task(workload), uses=(use,))


TASKS = (
    task("a", "m.onnx", "conv1, relu1"),
    task("b", "m.onnx", "transpose"),
    task("c", "m.onnx", "transpose"),
    task("d", "n.onnx", "conv2"),
    task("e", "m.onnx", "conv2"),
)


def test_a_name_is_as_long_as_it_has_to_be() -> None:
    names = task_names(TASKS)
    assert names[0] == "conv1, relu1"
    assert names[1] == f"m.onnx:transpose:{TASKS[1].key.workload[:12]}"
    assert names[3:] == ("n.onnx:conv2", "m.onnx:conv2")


def test_a_layer_a_digest_and_a_part_find_their_tasks() -> None:
    assert tasks_named(TASKS, "relu1") == (0,)
    assert tasks_named(TASKS, TASKS[2].key.workload[:20]) == (2,)
    assert tasks_named(TASKS, "transpose") == (1, 2)
    assert tasks_named(TASKS, "n.onnx") == (3,)
    assert tasks_named(TASKS, "pool") == ()


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1), st.sampled_from("mn"), st.sampled_from("xyz")),
        unique_by=lambda each: each[0],
    )
)
def test_a_name_that_is_shown_finds_its_task_alone(rows: list[tuple[str, str, str]]) -> None:
    tasks = [task(*row) for row in rows]
    names = task_names(tasks)
    assert len(set(names)) == len(names)
    for at, name in enumerate(names):
        assert tasks_named(tasks, name) == (at,)


# What `tunegate compare --env` takes.

TWO = (Path("old"), Path("new"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (CompareOptions(base="m.onnx", environments=TWO[:1]), "give it twice"),
        (CompareOptions(base="m.onnx", head="n.onnx", environments=TWO), "one ONNX file"),
        (CompareOptions(base="m", environments=TWO, are_commands=True), "one ONNX file"),
        (CompareOptions(base="tvm:m.onnx", environments=TWO), "compiles the model"),
        (CompareOptions(base="m.onnx", environments=TWO), "no virtual environment"),
        (CompareOptions(base=".", head=".", environments=TWO), "two directories"),
        (CompareOptions(base="m.onnx"), r"HEAD is missing\. See: tunegate"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    options: CompareOptions, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=problem):
        run(options)
    assert list(tmp_path.iterdir()) == []


def test_two_artifacts_run_in_an_environment_each(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    both = compare_models.Artifacts(tmp_path / "old", tmp_path / "new")
    options = CompareOptions(base="", environments=TWO)
    assert compare_environments.run_by_environments(str(both.base), str(both.head), options) == both


# One artifact as two builds.


def environment(directory: Path, version: str) -> RuntimeEnvironment:
    return RuntimeEnvironment(
        directory=directory,
        python=directory / "bin" / "python",
        version=version,
        packages={"onnxruntime": version},
        others={},
    )


@pytest.mark.parametrize(
    ("others", "are_alike"), [(("a", "1"), True), (("b", "1"), False), (("a", "2"), False)]
)
def test_the_environment_decides_with_the_artifact(
    others: tuple[str, str], tmp_path: Path, *, are_alike: bool
) -> None:
    runtime = runtime_named("onnxruntime")
    save(conv_model(), tmp_path / "m.onnx")
    model = make_model(tmp_path / "m.onnx")
    directory, version = others
    sides: Sides[compare_environments.SideEnvironment] = Sides(
        environment(tmp_path / "a", "1"), environment(tmp_path / directory, version)
    )
    places = Sides(tmp_path / "out" / "base", tmp_path / "out" / "head")
    builder = SavingBuilder(runtime, tmp_path / "scratch", seed=1)
    base, head = compare_environments.built_under(runtime, model, places, sides, builder)
    assert base is not None
    assert head is not None
    assert (base.key == head.key) is are_alike
    assert head.title == f"ONNX Runtime {version}"
    found = compare_environments.with_relative_directory(head, tmp_path)
    assert found is not None
    assert found.directory == "out/head"
    assert (tmp_path / found.directory / "artifact.json").is_file()

    reason = compare_environments.NoEnvironment(reason="no such package", broken=True)
    base, head = compare_environments.built_under(
        runtime, model, places, Sides(None, reason), builder
    )
    assert base is None
    assert head is not None
    assert (head.error, head.crashed) == ("no such package", True)
