"""The rules that judge a change, in real repositories."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.git_repository import Checkout, actions_checkout, new_repository
from tests.support.report_parts import cache, plan
from tests.support.small_onnx import conv_model
from tunegate.artifacts.plans import TuningPlan
from tunegate.cli.main import main
from tunegate.errors import ArtifactError, ConfigError, RevisionError
from tunegate.project import Review, open_project
from tunegate.settings import Overrides, Settings
from tunegate.wiring import record_source
from tunegate_cache.format.names import Group
from tunegate_cache.format.records import Provenance

NAME = "tunegate.yaml"
MODELS = "models: [{path: models/*.onnx}]\n"
STRICT = MODELS + "gate: {margin-percent: 2, release-margin-percent: 4}\n"
LOOSE = MODELS + "gate: {margin-percent: 60, release-margin-percent: 70, release-tags: none}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Strict rules on `main`, loose ones on the branch that is checked out."""
    made = new_repository(tmp_path / "r")
    made.commit({NAME: STRICT.encode(), "models/m.onnx": content(seed=0)})
    made.git("checkout", "-q", "-b", "change")
    made.commit({NAME: LOOSE.encode(), "models/m.onnx": content(seed=1)})
    return made


def content(*, seed: int) -> bytes:
    serialized: bytes = conv_model(seed=seed).SerializeToString()
    return serialized


def reviewed(checkout: Checkout, **fields: object) -> Review:
    settings = Settings(repository=checkout.path, **{"base": "main", **fields})  # type: ignore[arg-type]
    return open_project(settings).review(settings)


def keys(review: Review) -> list[str]:
    return [change.key for change in review.changes.policy_changes]


def test_the_base_judges_and_what_the_head_loosens_is_told(checkout: Checkout) -> None:
    review = reviewed(checkout)
    assert review.config.gate.margin_percent == 2
    expected = ["gate.margin-percent", "gate.release-margin-percent", "gate.release-tags"]
    assert keys(review) == expected


def test_records_name_the_repository_and_the_run_that_a_revocation_names(
    checkout: Checkout,
) -> None:
    settings = Settings(repository=checkout.path)
    subject = open_project(settings).checkout()
    assert record_source(subject, {}) == Provenance(repository="r", commit=subject.commit)
    checkout.git("remote", "add", "origin", "https://github.com/acme/models.git")
    job = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/models",
        "GITHUB_RUN_ID": "123",
    }
    source = record_source(open_project(settings).checkout(), job)
    assert (source.repository, source.run) == ("acme/models", "123")


def test_a_sparse_checkout_without_the_configuration_has_it_as_committed(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.git("checkout", "-q", "main")
    strictest = STRICT.replace("gate: {", "gate: {policy-changes: fail, ")
    checkout.commit({NAME: strictest.encode(), "tunegate.lock": PIN.encode(), "src/a.py": b"1"})
    checkout.git("checkout", "-q", "-b", "innocent")
    checkout.commit({"src/a.py": b"2"})
    checkout.git("sparse-checkout", "set", "--no-cone", "src/")
    assert not (checkout.path / NAME).exists()
    review = reviewed(checkout)
    assert (keys(review), review.config.gate.margin_percent) == ([], 2)
    assert not [note for note in review.changes.notes if "not committed" in note]
    line = ("--repository", str(checkout.path), "--out", str(tmp_path / "out"))
    assert main(["run", *line, "--base", "main"]) == 0


def test_a_sparse_checkout_hides_no_looser_rules(checkout: Checkout) -> None:
    checkout.git("sparse-checkout", "set", "--no-cone", "src/")
    expected = ["gate.margin-percent", "gate.release-margin-percent", "gate.release-tags"]
    assert keys(reviewed(checkout)) == expected
    checkout.git("sparse-checkout", "disable")
    checkout.commit({NAME: None})
    assert keys(reviewed(checkout)) == [NAME]


def test_whoever_chose_the_revisions_says_how(checkout: Checkout) -> None:
    why = "pull request into main: first parent of the merge commit"
    assert reviewed(checkout, chosen_by=why).changes.revisions.reason == why
    assert reviewed(checkout, base="main~0").changes.revisions.reason == "given by --base"


def test_a_later_job_finds_the_same_rules_whatever_its_plan_says(checkout: Checkout) -> None:
    review = reviewed(checkout)
    again = open_project(Settings(repository=checkout.path)).review_of(review.changes)
    assert again.config == review.config
    assert again.waivers == review.waivers


def test_arguments_override_both(checkout: Checkout) -> None:
    review = reviewed(
        checkout, overrides=Overrides({"gate.margin-percent": 9.0, "cache.zone": "pr/1"})
    )
    assert review.config.gate.margin_percent == 9
    assert review.config.cache.zone == "pr/1"
    assert keys(review) == ["gate.release-tags"]


def test_configurations_outside_the_checkout_judge_both(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "trusted.yaml").write_text(LOOSE)
    review = reviewed(checkout, config=tmp_path / "trusted.yaml")
    assert (review.config.gate.margin_percent, keys(review)) == (60, [])


def test_without_the_bases_configuration_the_heads_judges_as_told(checkout: Checkout) -> None:
    checkout.git("mv", NAME, "other.yaml")
    checkout.commit({})
    review = reviewed(checkout, config=checkout.path / "other.yaml")
    assert (review.config.gate.margin_percent, keys(review)) == (60, [])
    assert review.changes.notes == (
        "the base has no configuration that can be read: the head's judges this change",
    )


def test_without_the_bases_configuration_the_head_names_no_file_on_the_runner(
    checkout: Checkout,
) -> None:
    inputs = "inputs: {x: {values: {file: /data/x.npy}}}"
    checkout.commit({"other.yaml": f"models: [{{path: models/*.onnx, {inputs}}}]".encode()})
    with pytest.raises(ConfigError, match=r"/data/x\.npy lies outside of the repository"):
        reviewed(checkout, config=checkout.path / "other.yaml")


def test_a_broken_configuration_of_the_base_is_told_with_the_reason(checkout: Checkout) -> None:
    checkout.commit({NAME: b"models: 3"})
    checkout.commit({NAME: LOOSE.encode() + b"budget: {minutes: 1}"})
    review = reviewed(checkout, base="HEAD~1")
    assert review.config.gate.margin_percent == 60
    (told,) = review.changes.policy_changes
    assert (told.key, told.effect, told.counts) == (NAME, "changed", "now")
    assert "models" in told.old


def test_no_configuration_on_either_side_is_an_error(checkout: Checkout) -> None:
    with pytest.raises(ConfigError, match="not found"):
        reviewed(checkout, config=checkout.path / "none.yaml")


def test_since_a_release_the_rules_are_those_that_are_merged(checkout: Checkout) -> None:
    """The margin and the tags are neither those of the release nor the head's."""
    checkout.git("tag", "v1", "main~0")
    checkout.git("checkout", "-q", "main")
    merged = STRICT.replace("release-margin-percent: 4", "release-margin-percent: 3")
    checkout.commit({NAME: merged.encode()})
    checkout.git("checkout", "-q", "change")
    checkout.git("rebase", "-q", "-X", "theirs", "main")
    review = reviewed(checkout, base=None, since_release=True)
    assert (review.changes.revisions.release, review.config.gate.margin_percent) == ("v1", 3)
    assert "gate.release-tags" in keys(review)


def test_waivers_of_the_head_are_told_and_do_not_count(checkout: Checkout) -> None:
    waiver = (
        "waivers: [{model: models/m.onnx, target: cpu, ceiling-percent: 9, "
        "expires: 2020-01-01, issue: i, reason: r}]"
    )
    checkout.commit({NAME: STRICT.encode(), "tunegate-waivers.yaml": waiver.encode()})
    review = reviewed(checkout)
    assert (review.waivers.counting, len(review.waivers.pending)) == ((), 1)
    assert keys(review) == ["tunegate-waivers.yaml"]


def test_a_snapshot_that_the_change_pins_is_not_what_it_is_judged_with(checkout: Checkout) -> None:
    checkout.commit({NAME: STRICT.encode(), "tunegate.lock": PIN.encode()})
    review = reviewed(checkout)
    assert review.pins == {}
    (told,) = review.changes.policy_changes
    assert (told.key, told.old, told.new) == ("tunegate.lock", "no pins", "main/t old")
    assert reviewed(checkout, base="HEAD").pins == {Group("main", "t"): "old"}


def test_a_new_target_without_a_price_costs_what_the_base_pays(checkout: Checkout) -> None:
    priced = "targets: [{name: cpu, usd-per-hour: 1}]\nbudget: {usd: 1}\n"
    base = checkout.commit({NAME: (MODELS + priced).encode()})
    checkout.commit({NAME: (MODELS + "targets: [{name: cpu}, {name: new}]\n").encode()})
    targets = reviewed(checkout, base=base).config.targets
    assert [target.usd_per_hour for target in targets] == [1, 1]


def test_a_later_job_fetches_a_base_that_it_lacks(checkout: Checkout, tmp_path: Path) -> None:
    review = reviewed(checkout)
    shallow = actions_checkout(checkout, tmp_path / "job", review.changes.revisions.head)
    again = open_project(Settings(repository=shallow.path)).review_of(review.changes)
    assert again.config == review.config


@pytest.fixture
def branched(tmp_path: Path) -> Checkout:
    """Branched off before `main` had any rules."""
    made = new_repository(tmp_path / "b")
    made.commit({"models/m.onnx": content(seed=0)})
    made.git("checkout", "-q", "-b", "change")
    made.git("checkout", "-q", "main")
    pins = {"tunegate.lock": PIN.encode()}
    made.commit({NAME: STRICT.encode(), "tunegate-waivers.yaml": WAIVER.encode(), **pins})
    made.git("checkout", "-q", "change")
    return made


PIN = '{"pins": [{"zone": "main", "target": "t", "version": 1, "index": "old"}]}'
WAIVER = (
    "waivers: [{model: models/m.onnx, target: cpu, ceiling-percent: 9, "
    "expires: 2020-01-01, issue: i, reason: r}]"
)


@pytest.mark.parametrize("given", [{"base": None}, {"base": "main~1", "policy": "main"}])
def test_an_old_branch_is_judged_by_the_rules_of_today(
    branched: Checkout, given: dict[str, str | None]
) -> None:
    branched.commit({NAME: LOOSE.encode(), "models/m.onnx": content(seed=1)})
    review = reviewed(branched, **given)
    assert review.changes.revisions.base == branched.git("rev-parse", "main~1")
    assert review.config.gate.margin_percent == 2
    assert "gate.margin-percent" in keys(review)


def test_an_old_branch_is_not_told_what_it_has_not_touched(branched: Checkout) -> None:
    branched.commit({"models/m.onnx": content(seed=1)})
    review = reviewed(branched, base=None)
    assert (review.config.gate.margin_percent, keys(review)) == (2, [])
    assert (len(review.waivers.counting), review.pins) == (1, {Group("main", "t"): "old"})
    again = open_project(Settings(repository=branched.path)).review_of(review.changes)
    assert again.config == review.config


def test_a_branch_that_is_behind_is_told_of_its_own_changes_alone(checkout: Checkout) -> None:
    """Main has a smaller margin, a model with an entry and a waiver since it began."""
    checkout.git("checkout", "-q", "main")
    own = "models: [{path: new.onnx, objective: {ms: 9}}, {path: models/*.onnx}]\n"
    since = STRICT.replace(MODELS, own).replace("margin-percent: 2", "margin-percent: 1")
    since += "dims: {tokens: 8}\n"
    files = {"new.onnx": content(seed=2), "tunegate-waivers.yaml": WAIVER.encode()}
    checkout.commit({NAME: since.encode(), **files})
    checkout.git("checkout", "-q", "-B", "behind", "main~1")
    theirs = STRICT.replace("gate: {", "gate: {pairs: 9, ").replace("/*.onnx", "/*.onnx, dims: {}")
    waivers = WAIVER.replace("m.onnx", "other.onnx")
    checkout.commit({NAME: theirs.encode(), "tunegate-waivers.yaml": waivers.encode()})
    review = reviewed(checkout)
    assert keys(review) == ["gate.pairs", "tunegate-waivers.yaml"]
    assert review.config.gate.margin_percent == 1
    assert [waiver.model for waiver in review.waivers.counting] == ["models/m.onnx"]


def test_a_policy_that_is_no_revision_is_an_error(branched: Checkout) -> None:
    with pytest.raises(RevisionError, match='--policy: "nowhere" is not a revision'):
        reviewed(branched, policy="nowhere")


def planned(checkout: Checkout, **revisions: str) -> TuningPlan:
    changes = reviewed(checkout).changes
    return plan(replace(changes, revisions=replace(changes.revisions, **revisions)), cache())


def test_a_plan_of_the_named_commits_is_taken(checkout: Checkout) -> None:
    for named in (Settings(), Settings(base="main"), Settings(head="change")):
        settings = replace(named, repository=checkout.path)
        open_project(settings).require_plan(planned(checkout), settings)


@pytest.mark.parametrize("name", ["head", "base", "policy"])
def test_a_plan_that_names_other_commits_is_refused(name: str, checkout: Checkout) -> None:
    """The base judges where a base is named and no policy."""
    settings = Settings(repository=checkout.path, base="main")
    with pytest.raises(ArtifactError, match=f"made for {name} cccccccccccc"):
        open_project(settings).require_plan(planned(checkout, **{name: "c" * 40}), settings)


def test_a_model_with_uncommitted_changes_is_named(checkout: Checkout) -> None:
    review = reviewed(checkout)
    project = open_project(Settings(repository=checkout.path))
    assert project.uncommitted_lines(review) == ()
    for name in ("models/m.onnx", "models/new.onnx", "models/notes.txt", "other.onnx"):
        (checkout.path / name).write_bytes(b"changed")
    told = " is not committed as it is here, and only commits count: commit it"
    named = (f"models/m.onnx{told}", f"models/new.onnx{told}")
    assert project.uncommitted_lines(review) == named
    assert reviewed(checkout).changes.notes == named
    assert project.uncommitted_lines_here() == named
    assert project.uncommitted_lines(reviewed(checkout, head="HEAD~1")) == ()
    (checkout.path / NAME).write_bytes((checkout.path / NAME).read_bytes() + b"# more\n")
    told = f"{NAME} is read as it is here, with what is not committed"
    assert told in reviewed(checkout, head="HEAD~1").changes.notes


def test_without_a_base_every_model_is_new(checkout: Checkout) -> None:
    changes = reviewed(checkout, base=None, no_base=True).changes
    assert changes.revisions.base is None
    assert [(change.path, change.kind) for change in changes.models] == [("models/m.onnx", "added")]
