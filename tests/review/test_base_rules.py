import datetime
from pathlib import Path

import msgspec
import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.measured_cells import MODEL, make_changes, make_version
from tests.support.models.outlines import Outlines
from tests.support.waivers import make_waiver
from tunegate.artifacts.changes import Ancestor, ModelVersion
from tunegate.cli.handlers.doctor_checks import Setting, sources
from tunegate.config import (
    Config,
    GateConfig,
    InputConfig,
    MetricCommandConfig,
    ModelConfig,
    ObjectiveConfig,
    ProfileConfig,
    TargetConfig,
    ValuesConfig,
)
from tunegate.config_key import keys_of
from tunegate.errors import ConfigError
from tunegate.project import open_project
from tunegate.review.base_rules import merged_metric, newly_outside
from tunegate.review.config_file import config_at, load_config, path_inside
from tunegate.review.gate_rules import GateRules, Policies, judging_config, rules_digest
from tunegate.review.model_settings import shapes_for
from tunegate.review.pair_models import with_earlier_bases
from tunegate.settings import Settings
from tunegate.system.git.repository import GitRepository

GATE = GateConfig()
USUAL = GateRules(gate=GATE)


def test_the_day_does_not_count() -> None:
    tomorrow = Policies(today=datetime.date(2026, 3, 1))
    assert rules_digest(GateRules(gate=GATE, policies=tomorrow)) == rules_digest(USUAL)


def test_of_two_bounds_on_one_command_the_stricter_counts_and_no_other_command_runs() -> None:
    wide, narrow, other = (
        MetricCommandConfig(run=run, at_most=most)
        for run, most in (("score a", 2.0), ("score a", 1.0), ("score b", 0.5))
    )
    assert merged_metric(wide, narrow) == merged_metric(narrow, wide) == narrow
    assert merged_metric(wide, other) == wide
    assert merged_metric(None, other) is None


def test_every_rule_counts() -> None:
    others = (
        GateRules(gate=GateConfig(margin_percent=4.0)),
        GateRules(gate=GateConfig(absolute_floor_us=1.0)),
        *(
            GateRules(gate=GATE, policies=policies)
            for policies in (
                Policies(metric_margin=1.0),
                Policies(objectives={"m.onnx": ObjectiveConfig(ms=1.0)}),
                Policies(waivers=(make_waiver(),)),
            )
        ),
    )
    digests = {rules_digest(rules) for rules in others}
    assert len(digests) == len(others)
    assert rules_digest(USUAL) not in digests


# The source of each effective setting.

TEXT = """
models:
  - path: a.onnx
  - {path: b.onnx, inputs: {x: [1, 2]}}
gate: {seconds: 60}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tunegate.yaml"
    path.write_text(TEXT)
    return path


def settings_of(path: Path) -> dict[str, Setting]:
    config = load_config(path)
    return {setting.key: setting for setting in sources(path, config, config)}


def test_what_is_written_comes_from_the_file(path: Path) -> None:
    found = settings_of(path)
    assert found["models.1.path"] == Setting("models.1.path", '"b.onnx"', "file")
    assert found["models.1.inputs.x"] == Setting("models.1.inputs.x", "[1,2]", "file")
    assert found["gate.seconds"] == Setting("gate.seconds", "60.0", "file")


def test_what_is_not_written_is_a_default(path: Path) -> None:
    found = settings_of(path)
    assert found["gate.margin-percent"].source == "default"
    assert found["targets.0.name"] == Setting("targets.0.name", '"cpu"', "default")
    assert found["cache.region"] == Setting("cache.region", "null", "default")


def test_what_an_argument_changed_comes_from_it(path: Path) -> None:
    config = load_config(path)
    gate = msgspec.structs.replace(config.gate, seconds=5.0)
    found = sources(path, config, msgspec.structs.replace(config, gate=gate))
    changed = [setting for setting in found if setting.source == "argument"]
    assert changed == [Setting("gate.seconds", "5.0", "argument")]


def test_every_setting_is_said_once(path: Path) -> None:
    config = load_config(path)
    keys = [setting.key for setting in sources(path, config, config)]
    assert len(keys) == len(set(keys))
    assert {key.partition(".")[0] for key in keys} == {each.place for each in keys_of(Config)}


def test_a_file_that_went_away_leaves_defaults(path: Path) -> None:
    config = load_config(path)
    path.unlink()
    assert {setting.source for setting in sources(path, config, config)} == {"default"}


def config(batch: int, *, path: str = "**/*.onnx", margin_percent: float = 3.0) -> Config:
    return Config(
        models=(ModelConfig(path=path, inputs={"x": (batch, 8)}),),
        targets=(TargetConfig(name="cpu"),),
        gate=GateConfig(margin_percent=margin_percent),
    )


def test_without_a_configuration_of_the_base_the_heads_judges() -> None:
    head = config(4, margin_percent=60.0)
    assert judging_config(None, head, make_changes(), Outlines(None, 8)) == head


def test_the_bases_shapes_and_margin_judge_where_they_still_fit() -> None:
    base, head = config(1), config(4, margin_percent=60.0)
    judging = judging_config(base, head, make_changes(), Outlines(None, 8))
    assert judging.gate.margin_percent == 3.0
    assert shapes_for(judging, MODEL, None).shapes == {"x": (1, 8)}


def test_the_heads_shapes_judge_where_the_model_takes_others_now_or_cannot_be_read() -> None:
    for outlines, batch in ((Outlines(4, 8), 4), (Outlines(), 1)):
        judging = judging_config(config(1), config(4), make_changes(), outlines)
        assert shapes_for(judging, MODEL, None).shapes == {"x": (batch, 8)}


def test_a_model_that_has_moved_keeps_the_rules_of_the_path_that_it_had() -> None:
    base, head = config(1, path="old/*"), config(4)
    (change,) = make_changes().models
    old = msgspec.structs.replace(make_version("b"), path="old/m.onnx")
    batches = []
    for before in (old, None):
        moved = msgspec.structs.replace(change, base=before)
        changes = msgspec.structs.replace(make_changes(), models=(moved,))
        judging = judging_config(base, head, changes, Outlines(None, 8))
        batches.append(shapes_for(judging, MODEL, None).shapes["x"][0])
    assert batches == [1, 4]


def test_a_model_that_the_head_has_no_more_is_not_asked_for() -> None:
    (change,) = make_changes().models
    gone = msgspec.structs.replace(change, kind="deleted", head=None)
    changes = msgspec.structs.replace(make_changes(), models=(gone,))
    judging = judging_config(config(1), config(4), changes, Outlines())
    assert shapes_for(judging, MODEL, None).shapes == {"x": (4, 8)}


BROKEN = {MODEL: "m.onnx: not a valid ONNX model"}


class History(Outlines):
    """Versions by their content, latest first, three commits between them."""

    def __init__(self, *contents: str) -> None:
        super().__init__()
        self.contents = list(contents)

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        after = self.contents.index(version.content_digest) + 1
        return (make_version(self.contents[after]), 3) if after < len(self.contents) else None


def test_the_version_before_takes_the_place_of_a_broken_base() -> None:
    (change,) = with_earlier_bases(make_changes(), BROKEN, History("b", "a")).models
    assert change.base == make_version("a")
    assert change.change == "unknown"
    assert change.ancestor == Ancestor(commits=3, reason=BROKEN[MODEL])


def test_further_back_the_commits_add_up_and_the_first_reason_stays() -> None:
    history = History("b", "a", "z")
    once = with_earlier_bases(make_changes(), BROKEN, history)
    (change,) = with_earlier_bases(once, {MODEL: "also broken"}, history).models
    assert change.base == make_version("z")
    assert change.ancestor == Ancestor(commits=6, reason=BROKEN[MODEL])


def test_where_there_is_none_and_where_nothing_is_broken_it_stays_as_it_is() -> None:
    changes = make_changes()
    assert with_earlier_bases(changes, BROKEN, History("b")) == changes
    assert with_earlier_bases(changes, {}, History("b", "a")) == changes


def _config(*files: str) -> Config:
    inputs = {f"x{n}": InputConfig(values=ValuesConfig(file=file)) for n, file in enumerate(files)}
    return Config(models=(ModelConfig(path="m.onnx", inputs=inputs),))


def test_files_of_the_repository_and_files_that_the_base_names_are_no_problem() -> None:
    assert newly_outside(_config("/data/x.npy"), _config("/data/x.npy", "inputs/x.npy")) == ()


def test_a_file_on_the_runner_that_only_the_head_names_is_told() -> None:
    (line,) = newly_outside(_config("/data/x.npy"), _config("/data/x.npy", "/etc/passwd"))
    assert line.startswith("models: m.onnx: inputs.x1.values: /etc/passwd lies outside")


def test_profiles_cases_and_the_tensors_of_a_sequence_are_looked_into() -> None:
    for values in (ValuesConfig(cases=("a", "/b.npy")), ValuesConfig(sequence=("a", "/b.npy"))):
        profile = ProfileConfig(inputs={"x": InputConfig(values=values)})
        head = Config(models=(ModelConfig(path="m.onnx", profiles={"long": profile}),))
        (line,) = newly_outside(_config(), head)
        assert "profiles.long: inputs.x.values: /b.npy lies outside" in line


NAME = "tunegate.yaml"
CONFIG_REVISION_TEXT = b"models: [{path: m.onnx}]\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({NAME: CONFIG_REVISION_TEXT, "ci/gate.yaml": CONFIG_REVISION_TEXT})
    return made


def test_the_file_is_read_as_the_revision_has_it(checkout: Checkout) -> None:
    checkout.commit({NAME: None})
    repository = GitRepository(checkout.path)
    before = config_at(repository, checkout.git("rev-parse", "HEAD~1"), NAME)
    assert before.config is not None
    assert before.config.models[0].path == "m.onnx"
    after = config_at(repository, checkout.git("rev-parse", "HEAD"), NAME)
    assert (after.config, after.problem) == (None, "")


@pytest.mark.parametrize(
    ("content", "problem"), [(b"models: [", "line 1"), (b"\xff", "not UTF-8"), (b"", "empty")]
)
def test_a_broken_file_is_a_problem_and_no_exception(
    checkout: Checkout, content: bytes, problem: str
) -> None:
    commit = checkout.commit({NAME: content})
    found = config_at(GitRepository(checkout.path), commit, NAME)
    assert found.config is None
    assert problem in found.problem
    assert f"{NAME} at {commit[:12]}" in found.problem


def test_a_link_in_a_revision_is_not_followed(checkout: Checkout) -> None:
    (checkout.path / NAME).unlink()
    (checkout.path / NAME).symlink_to("ci/gate.yaml")
    commit = checkout.commit({})
    found = config_at(GitRepository(checkout.path), commit, NAME)
    assert (found.config, "it is a link, not a file" in found.problem) == (None, True)


def test_a_file_of_the_checkout_has_its_path_there(checkout: Checkout, tmp_path: Path) -> None:
    root = checkout.path
    assert path_inside(root, root / "ci" / ".." / NAME) == NAME
    assert path_inside(root, tmp_path / "trusted.yaml") is None
    (tmp_path / "way-in").symlink_to(root)
    assert path_inside(root, tmp_path / "way-in" / NAME) == NAME


@pytest.mark.parametrize("linked", [NAME, "ci"])
def test_a_link_on_the_way_is_refused_wherever_it_leads(
    checkout: Checkout, tmp_path: Path, linked: str
) -> None:
    """Else a pull request could lead to a file outside, which is trusted."""
    root = checkout.path
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gate.yaml").write_bytes(CONFIG_REVISION_TEXT)
    place = root / linked
    place.rename(tmp_path / "away")
    place.symlink_to(outside / "gate.yaml" if linked == NAME else outside)
    path = place if linked == NAME else place / "gate.yaml"
    with pytest.raises(ConfigError, match=f"{linked} is a symbolic link"):
        path_inside(root, path)


@pytest.mark.parametrize("path", ["deps/tunegate.yaml", "deps/ci/tunegate.yaml"])
def test_a_configuration_in_a_submodule_is_refused(checkout: Checkout, path: str) -> None:
    """Its commit, and so the rules, would be what the change says."""
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps")
    place = checkout.path / path
    place.parent.mkdir(parents=True)
    place.write_bytes(CONFIG_REVISION_TEXT)
    settings = Settings(repository=checkout.path, config=place)
    with pytest.raises(ConfigError) as raised:
        open_project(settings)
    assert str(raised.value) == (
        f"{path}: deps is a submodule. Keep the configuration in this repository."
    )


def test_a_revision_with_a_submodule_in_the_way_has_a_problem(checkout: Checkout) -> None:
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps")
    checkout.git("commit", "-q", "-m", "a submodule")
    head = checkout.git("rev-parse", "HEAD")
    found = config_at(GitRepository(checkout.path), head, "deps/ci/tunegate.yaml")
    assert found.problem == f"deps/ci/tunegate.yaml at {head[:12]}: deps is a submodule"
