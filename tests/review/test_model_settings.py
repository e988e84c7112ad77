from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.git_repository import Checkout, new_repository
from tunegate.artifacts.changes import ModelInput, PolicyChange, Revisions
from tunegate.config import (
    AccuracyConfig,
    BudgetConfig,
    Config,
    InputConfig,
    MetricCommandConfig,
    ModelConfig,
    ProfileConfig,
    TargetConfig,
    ValuesConfig,
    WatchConfig,
)
from tunegate.errors import ConfigError
from tunegate.models.reader import GitModelReader
from tunegate.review.base_rules import merged_targets, names, on_known_runners, target_changes
from tunegate.review.compared_work import replaced_values
from tunegate.review.config_file import entry_problems, parse_config
from tunegate.review.covered_model import names_in_head
from tunegate.review.effective_config import effective, of_head_alone
from tunegate.review.input_shapes import resolve_shapes
from tunegate.review.model_settings import stray_symbols
from tunegate.review.named_files import described_missing, missing_files, replaced_files
from tunegate.system.git.repository import GitRepository


def problems(entry: ModelConfig) -> list[str]:
    return [each.text for each in entry_problems(Config(models=(entry,)))]


def test_shapes_dims_profiles_and_values_are_read() -> None:
    text = """
        dims: {batch: 1}
        models:
          - path: m.onnx
            dims: {seq: 8}
            inputs:
              a: [1, 3]
              b: {shape: [1, 3], values: {low: 0, high: 9.5}}
              c: {values: {cases: [16000]}}
            profiles:
              long: {dims: {seq: 128}, inputs: {a: [4, 3]}}
              short: {}
    """
    config = parse_config(text, "x")
    assert config.dims == {"batch": 1}
    assert config.models == (
        ModelConfig(
            path="m.onnx",
            dims={"seq": 8},
            inputs={
                "a": (1, 3),
                "b": InputConfig(shape=(1, 3), values=ValuesConfig(low=0, high=9.5)),
                "c": InputConfig(values=ValuesConfig(cases=(16000,))),
            },
            profiles={
                "long": ProfileConfig(dims={"seq": 128}, inputs={"a": (4, 3)}),
                "short": ProfileConfig(),
            },
        ),
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "models: m: profiles: a profile has no name. Write one before its colon."),
        ("a b", 'models: m: profiles: the name "a b" may have letters, digits, dots,'),
        ("a.onnx", 'models: m: profiles: the name "a.onnx" looks like that of a file.'),
    ],
)
def test_a_profile_needs_a_name(name: str, said: str) -> None:
    (found,) = problems(ModelConfig(path="m", profiles={name: ProfileConfig()}))
    assert found.startswith(said)


def test_what_judges_may_have_a_model_without_a_profile_beside_its_profiles() -> None:
    entry = ModelConfig(path="m", profiles={"": ProfileConfig(), "a b": ProfileConfig()})
    (found,) = entry_problems(Config(models=(entry,)), is_merged=True)
    assert 'the name "a b"' in found.text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (ValuesConfig(), "give low and high, or a file, or cases, or a sequence"),
        (
            ValuesConfig(low=0, high=1, file="x.npy"),
            "give low and high, or a file, or cases, or a sequence",
        ),
        (ValuesConfig(low=0), "high is missing beside 0"),
        (ValuesConfig(low=2, high=1), "low is 2, which is more than high, 1"),
    ],
)
def test_values_have_one_form(values: ValuesConfig, said: str) -> None:
    (found,) = problems(ModelConfig(path="m", inputs={"x": InputConfig(values=values)}))
    assert found == f"models: m: inputs.x.values: {said}."


def test_all_problems_are_said_at_once() -> None:
    text = "models: [{path: m, targets: [gpu], profiles: {'': {}}}, {path: n, targets: [tpu]}]"
    with pytest.raises(ConfigError) as raised:
        parse_config(text, "x")
    assert str(raised.value) == 'x: models: m: unknown target "gpu". Known: cpu.'
    expected = ["models: m: profiles:", "models: n: unknown t"]
    assert [each.partition(": ")[2][:20] for each in raised.value.others] == expected
    assert raised.value.about is not None
    assert raised.value.about.key == "models[0].targets"


@pytest.mark.parametrize(
    ("accuracy", "told"),
    [
        ("{metric-command: {run: 'python \"', at-most: 1}}", "is not a command line"),
        ("{metric-command: {run: ' ', at-most: 1}}", "is empty. Write a program"),
        ("{metric-command: {run: python}}", "at-most"),
        ("{metric-command: {run: python, at-most: .nan}}", ".nan is not a number"),
        ("{metric-command: {run: python, at-least: 1}}", "at-least"),
        ("{metric-command: wer.py}", "metric-command"),
        (
            "{min-agreement: 0.98}",
            "min-agreement is in percent: 0.98 would let anything ship. Write 98",
        ),
        ("2", "accuracy: expected `same` or a mapping, not 2. Write {max-error: 2}, or"),
        ("{}", "accuracy needs max-error, min-agreement or metric-command"),
    ],
)
def test_a_budget_that_is_none_is_one_line(accuracy: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"models: [{{path: m.onnx, accuracy: {accuracy}}}]", "tunegate.yaml")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


CPU, GPU = TargetConfig(name="cpu", threads=2), TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def config(*targets: TargetConfig) -> Config:
    return Config(models=(ModelConfig(path="*.onnx"),), targets=targets)


def test_the_base_defines_its_targets_and_comes_first() -> None:
    base = config(CPU, GPU)
    head = config(TargetConfig(name="new"), TargetConfig(name="cpu", threads=9))
    assert merged_targets(base, head) == (CPU, GPU, TargetConfig(name="new"))


@pytest.mark.parametrize(
    ("ours", "budget", "theirs", "counts"),
    [(None, None, 1.5, 1.5), (None, 9.0, 0.0, 9.0), (9.0, None, 0.0, 9.0), (None, 9.0, None, None)],
)
def test_the_head_prices_only_a_target_that_had_no_price(
    ours: float | None, budget: float | None, theirs: float | None, counts: float | None
) -> None:
    base, head = (config(replace(CPU, usd_per_hour=price)) for price in (ours, theirs))
    base = replace(base, budget=BudgetConfig(usd_per_hour=budget))
    assert merged_targets(base, head) == (replace(CPU, usd_per_hour=counts),)
    expected = (
        []
        if ours == theirs and counts == theirs
        else ["now" if counts == theirs else "once merged"]
    )
    assert [change.counts for change in target_changes(base, head)] == expected


@pytest.mark.parametrize(
    ("price", "wait", "counts"),
    [
        (None, 9.0, (9.0, 9.0)),
        (0.0, 1e9, (9.0, 300.0)),
        (0.5, 300.0, (9.0, 300.0)),
        (20.0, 0.0, (20.0, 0.0)),
    ],
)
def test_a_new_target_is_neither_cheaper_nor_more_patient_than_the_base_s_on_its_runners(
    price: float | None, wait: float, counts: tuple[float, float]
) -> None:
    new = TargetConfig(name="new", usd_per_hour=price, device_wait_seconds=wait)
    dear = replace(GPU, runner=("h100",), usd_per_hour=50.0)
    base = config(CPU, replace(CPU, name="old", usd_per_hour=2.0), dear)
    base = replace(base, budget=BudgetConfig(usd_per_hour=9.0))
    *_, target = merged_targets(base, config(new))
    assert (target.usd_per_hour, target.device_wait_seconds) == counts
    told = {
        (c.key, c.old)
        for c in target_changes(base, config(new))
        if c.counts != "now" and c.target == "new"
    }
    assert (("targets[].usd-per-hour", "9") in told) == (price in (0.0, 0.5))
    assert (("targets[].device-wait-seconds", "300") in told) == (wait == 1e9)


def test_a_target_that_is_gone_loosens_and_a_new_one_tightens() -> None:
    gone, new = target_changes(config(CPU), config(GPU))
    expected = ("targets[].name", "cpu", "removed", "cpu")
    assert (gone.key, gone.old, gone.new, gone.target) == expected
    assert (gone.effect, gone.counts) == ("loosened", "once merged")
    assert (new.key, new.old, new.new, new.target) == ("targets[].name", "not set", "gpu", "gpu")
    assert (new.effect, new.counts) == ("tightened", "now")


def test_a_target_that_is_defined_otherwise_is_told_key_by_key() -> None:
    other = TargetConfig(name="cpu", threads=9)
    (change,) = target_changes(config(CPU, GPU), config(other, GPU))
    assert (change.key, change.old, change.new) == ("targets[].threads", "2", "9")
    assert (change.effect, change.target) == ("changed", "cpu")
    assert list(target_changes(config(CPU), config(CPU))) == []


def test_names_are_in_the_order_of_the_file() -> None:
    assert names(config(GPU, CPU)) == ("gpu", "cpu")


SECRETS = TargetConfig(name="new", runner=("self-hosted", "signing"))


@pytest.mark.parametrize("labels", [("signing",), ("self-hosted", "signing"), ("SELF-HOSTED",), ()])
def test_a_new_target_on_runners_of_no_target_counts_once_merged(labels: tuple[str, ...]) -> None:
    base, head = config(CPU), config(CPU, TargetConfig(name="new", runner=labels))
    assert on_known_runners(base, head).targets == (CPU,)
    (change,) = target_changes(base, head)
    assert (change.key, change.target) == ("targets[].runner", "new")
    assert (change.old, change.effect, change.counts) == ("not set", "changed", "once merged")


def test_a_new_target_on_the_runners_of_another_counts_at_once() -> None:
    ours = TargetConfig(name="gpu", kind="cuda", arch="sm_90", runner=("a", "b"))
    new = TargetConfig(name="more", runner=("b", "a"))
    assert on_known_runners(config(CPU, ours), config(CPU, ours, new)).targets == (CPU, ours, new)


def test_an_entry_keeps_the_targets_that_count() -> None:
    def of(*targets: str) -> Config:
        models = (ModelConfig(path="*.onnx", targets=targets), ModelConfig(path="a/*.onnx"))
        return Config(models=models, targets=(CPU, GPU, SECRETS))

    base = Config(models=(ModelConfig(path="*.onnx", targets=("cpu",)),), targets=(CPU, GPU))
    assert on_known_runners(base, of("gpu", "new")).models[0].targets == ("gpu",)
    assert on_known_runners(base, of("new")).models[0].targets == ("cpu",)
    assert on_known_runners(base, of("new")).models[1].targets == ()


def test_no_job_of_the_matrix_goes_to_runners_that_only_the_head_names() -> None:
    head = Config(models=(ModelConfig(path="m.onnx"),), targets=(CPU, SECRETS))
    found = effective(config(CPU), head, {"m.onnx": "m.onnx"}, lambda _: None)
    assert {target.runner for target in found.config.targets} == {CPU.runner}
    assert ("targets[].runner", "once merged") in {(c.key, c.counts) for c in found.changes}


def test_a_head_without_rules_of_a_base_chooses_no_runners_until_it_is_merged() -> None:
    head = config(CPU, SECRETS)
    found = of_head_alone(head)
    assert {target.runner for target in found.config.targets} == {CPU.runner}
    (told,) = found.changes
    assert (told.key, told.target, told.counts) == ("targets[].runner", "new", "once merged")
    assert of_head_alone(head, is_merged=True).config.targets == (CPU, SECRETS)


def test_a_head_without_rules_of_a_base_chooses_no_index_of_packages_and_no_executor() -> None:
    watch = WatchConfig(files=("uv.lock",), indexes=("https://packages.example",))
    head = Config(models=(ModelConfig(path="m.onnx"),), watch=watch, executor="ray")
    found = of_head_alone(head)
    assert (found.config.watch.indexes, found.config.executor) == ((), "local")
    assert [change.key for change in found.changes] == ["watch.indexes", "executor"]
    assert of_head_alone(head, is_merged=True).config == head


def test_thousands_of_entries_and_names_are_read_in_seconds() -> None:
    globs = tuple(ModelConfig(path=f"{at}-*.onnx", dims={"n": 1}) for at in range(600))
    named = ModelConfig(path="*", targets=tuple(map(str, range(600))))
    inputs = {f"{at}-m.onnx": (ModelInput("x", (None,), ("batch",)),) for at in range(300)}
    assert len([*stray_symbols(Config(models=globs), inputs)]) == 300
    assert max(len(problem.text) for problem in entry_problems(Config(models=(named,)))) < 99
    before, after = (
        [ModelInput(f"{at}{side}", (None,), (f"n{at}",)) for at in range(20_000)] for side in "ab"
    )
    assert len(names_in_head(before, after).renamed) == 20_000
    assert len(resolve_shapes(before, []).gaps) == 20_000


HEAD, BASE, TIP = "head", "base", "tip"
INPUTS = {"x": InputConfig(values=ValuesConfig(file="./in/x.npy"))}
CASES = {"x": InputConfig(values=ValuesConfig(cases=("a.npy", 3, "/mnt/b.npy", "../c.npy")))}
COMMAND = MetricCommandConfig(run="bin/judge --words=lib/words.txt run.PY team/model", at_most=1)
CONFIG = Config(
    models=(
        ModelConfig(
            path="m.onnx",
            inputs=INPUTS,
            profiles={"long": ProfileConfig(inputs=CASES)},
            accuracy=AccuracyConfig(metric_command=COMMAND),
        ),
    )
)


def _missing(revisions: Revisions, **there: str) -> list[str]:
    found = missing_files(CONFIG, revisions, lambda at, path: path if path in there[at] else "")
    return [each.path for each in found]


def test_each_file_that_must_be_there_is_looked_for_and_no_other_word() -> None:
    found = _missing(Revisions(base=None, head=HEAD), head="")
    assert found == ["in/x.npy", "a.npy", "bin/judge", "run.PY"]
    assert _missing(Revisions(base=None, head=HEAD), head=" ".join(found)) == []


def test_a_deleted_file_is_missed_and_one_that_the_base_has_got_since_is_not() -> None:
    behind = Revisions(base=BASE, head=HEAD, policy=TIP)
    others = "in/x.npy bin/judge run.PY"
    assert _missing(behind, head=others, base="", tip="a.npy") == []
    assert _missing(behind, head=others, base="a.npy", tip="a.npy") == ["a.npy"]


def test_what_is_missing_is_told_with_its_place_and_what_to_do() -> None:
    (missing, *_) = missing_files(CONFIG, Revisions(base=None, head=HEAD), lambda *_: "")
    assert missing.key == "models[0].inputs.x"
    assert described_missing(missing, ["inn/x.npy", "in/x.npz"]) == (
        "models: m.onnx: inputs.x.values: in/x.npy: no such file in this revision: "
        "commit it, or correct the path. Did you mean inn/x.npy?"
    )


def test_a_change_of_what_metrics_read_is_told_and_one_behind_is_not() -> None:
    behind = Revisions(base=BASE, head=HEAD, policy=TIP)
    contents = {(TIP, "bin/judge"): "2", (TIP, "lib/words.txt"): "3", (HEAD, "bin/judge"): "1"}
    told = [*replaced_files(CONFIG, behind, lambda at, path: contents.get((at, path), ""))]
    assert [(each.key, each.old, each.new) for each in told] == [
        ("models[].accuracy.metric-command", "bin/judge 2", "bin/judge 1")
    ]


NAME = "m.onnx"


def _config(values: ValuesConfig) -> Config:
    inputs = {"x": InputConfig(values=values)}
    profiles = {name: ProfileConfig(inputs=inputs) for name in ("short", "long")}
    return Config(models=(ModelConfig(path=NAME, inputs=inputs, profiles=profiles),))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "repository")


def _told(
    checkout: Checkout,
    head: dict[str, bytes | None],
    *,
    values: ValuesConfig = ValuesConfig(file="in/x.npy"),  # noqa: B008 -- frozen
    has_base: bool = True,
) -> list[PolicyChange]:
    base = checkout.commit({"in/x.npy": b"old", NAME: b"model"})
    revisions = Revisions(base=base if has_base else None, head=checkout.commit(head))
    reader = GitModelReader(GitRepository(checkout.path))
    names = [f"{NAME}@short", f"{NAME}@long"]
    return list(replaced_values(reader, revisions, _config(values), names))


def test_a_file_that_is_replaced_counts_once_merged_and_is_told_once(checkout: Checkout) -> None:
    (told,) = _told(checkout, {"in/x.npy": b"easier"})
    assert (told.key, told.counts, told.model) == ("models[].inputs.x.values", "once merged", NAME)
    assert told.old != told.new


def test_a_file_that_is_deleted_is_told(checkout: Checkout) -> None:
    (told,) = _told(checkout, {"in/x.npy": None})
    assert told.new == "deleted"


@pytest.mark.parametrize("head", [{"in/x.npy": b"old"}, {"other.npy": b"new"}])
def test_files_that_stay_are_not_told(checkout: Checkout, head: dict[str, bytes | None]) -> None:
    assert _told(checkout, head) == []


def test_a_new_file_changes_nothing(checkout: Checkout) -> None:
    assert _told(checkout, {"new.npy": b"new"}, values=ValuesConfig(cases=("new.npy", 7))) == []


def test_without_a_base_there_is_nothing_to_replace(checkout: Checkout) -> None:
    assert _told(checkout, {"in/x.npy": b"new"}, has_base=False) == []
