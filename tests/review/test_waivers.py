import datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import Checkout, new_repository
from tests.support.waivers import TODAY, make_waiver
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.verdicts import Waiver, waiver_of
from tunegate.config import Config, GateConfig, ModelConfig, ProfileConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.ports import Trailer
from tunegate.review.gate_rules import Waivers, merged_waivers, stray_waivers
from tunegate.review.waivers import (
    file_problems,
    parse_trailers,
    parse_waivers,
    read_waivers,
    waiver_problems,
)
from tunegate.system.git.repository import GitRepository

LATER = datetime.date(2026, 9, 1)
USUAL = make_waiver()


def test_a_waiver_that_the_head_lowers_or_shortens_counts_as_lowered() -> None:
    lower = make_waiver(ceiling_percent=4.0, expires=datetime.date(2026, 7, 2))
    found = merged_waivers([USUAL], [lower], "w.yaml")
    assert found.counting == (lower,)
    assert (found.pending, [told.effect for told in found.changes]) == ((), ["tightened"])


def test_a_waiver_that_the_head_removes_counts_no_more() -> None:
    found = merged_waivers([USUAL], [], "w.yaml")
    assert (found.counting, found.pending) == ((), ())
    (told,) = found.changes
    assert (told.old, told.new) == ("up to +8% until 2026-07-31", "no waiver")


def test_a_waiver_that_the_head_raises_stays_as_it_is_until_that_is_merged() -> None:
    for wider in (make_waiver(ceiling_percent=90.0), make_waiver(expires=LATER)):
        found = merged_waivers([USUAL], [wider], "w.yaml")
        assert (found.counting, found.pending) == ((USUAL,), (wider,))
        assert [(told.effect, told.counts) for told in found.changes] == [
            ("loosened", "once merged")
        ]


def test_higher_but_shorter_is_the_narrower_of_both() -> None:
    mixed = make_waiver(ceiling_percent=90.0, expires=datetime.date(2026, 7, 2))
    (counting,) = merged_waivers([USUAL], [mixed], "w.yaml").counting
    assert (counting.ceiling_percent, counting.expires) == (8.0, mixed.expires)


def test_other_words_for_the_same_waiver_are_no_change() -> None:
    assert merged_waivers([USUAL], [make_waiver(reason="as said")], "w.yaml").changes == ()


LONG = "models/m.onnx@long"


def test_a_narrow_waiver_of_a_profile_that_is_removed_leaves_no_wider_one_in_its_place() -> None:
    narrow = make_waiver(model=LONG, ceiling_percent=2.0)
    found = merged_waivers([USUAL, narrow], [USUAL], "w.yaml")
    assert ceiling(found.counting, LONG) == 2.0
    assert ceiling(found.pending, LONG) == 8.0
    (told,) = found.changes
    assert (told.model, told.effect, told.counts) == (LONG, "loosened", "once merged")


def test_a_model_whose_waiver_is_split_into_its_profiles_keeps_them() -> None:
    split = [make_waiver(model=f"models/m.onnx@{name}") for name in ("long", "short")]
    found = merged_waivers([USUAL], split, "w.yaml")
    assert (ceiling(found.counting, LONG), ceiling(found.counting, "models/m.onnx")) == (8.0, None)
    assert found.pending == ()


def of_some_cells() -> st.SearchStrategy[list[Waiver]]:
    """Waivers of the model and of its profiles, at most one of each."""
    names = ("models/m.onnx", LONG, "models/m.onnx@short")
    ceilings = st.fixed_dictionaries({}, optional=dict.fromkeys(names, st.integers(1, 9)))
    return ceilings.map(
        lambda found: [make_waiver(model=m, ceiling_percent=float(c)) for m, c in found.items()]
    )


@given(of_some_cells(), of_some_cells())
def test_nothing_counts_that_one_side_forbids(base: list[Waiver], head: list[Waiver]) -> None:
    counting = merged_waivers(base, head, "w.yaml").counting
    for name in ("models/m.onnx", LONG, "models/m.onnx@short", "models/m.onnx@other"):
        both = [ceiling(base, name), ceiling(head, name)]
        allowed = None if None in both else min(each for each in both if each is not None)
        assert ceiling(counting, name) == allowed


def ceiling(waivers: list[Waiver] | tuple[Waiver, ...], model: str) -> float | None:
    found = waiver_of(waivers, Cell(model=model, target="cpu"))
    return None if found is None else found.ceiling_percent


ENTRY = """
  - model: models/m.onnx
    target: cpu
    ceiling-percent: 8
    expires: 2026-07-31
    issue: https://example.com/17
    reason: a wider head, agreed with product
"""


def test_a_waiver_is_read() -> None:
    assert parse_waivers("waivers:" + ENTRY, "w.yaml", TODAY) == (make_waiver(),)


@pytest.mark.parametrize("text", ["", "waivers: []\n", "# none\n"])
def test_no_waivers_are_no_trouble(text: str) -> None:
    assert parse_waivers(text, "w.yaml", TODAY) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("waivers:" + ENTRY.replace("2026-07-31", "2027-07-31"), "over 90 days ahead"),
        (
            "waivers:" + ENTRY.replace("2026-07-31", "soon"),
            "waivers[0].expires: expected a date as year-month-day",
        ),
        ("waivers:" + ENTRY.replace("ceiling-percent: 8", "ceiling-percent: 0"), "above zero"),
        *(
            ("waivers:" + ENTRY.replace("https://example.com/17", blank), "Fill them in")
            for blank in ("''", '" "', "\u200b")
        ),
        ("waivers:" + ENTRY + ENTRY.lstrip("\n"), "waived twice"),
        ("waivers:" + ENTRY.replace("reason", "because"), "because"),
        ("waiver:" + ENTRY, "unknown key waiver. Did you mean waivers?"),
        ("waivers: [", "w.yaml: "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^w\.yaml: ") as caught:
        parse_waivers(text, "w.yaml", TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_that_is_wrong_is_told_at_once_in_our_own_words() -> None:
    wrong = ENTRY.replace("ceiling-percent", "ceiling").replace("https://example.com/17", "17")
    with pytest.raises(ConfigError) as caught:
        parse_waivers("waivers:" + wrong + ENTRY.replace("8", "8%"), "w.yaml", TODAY)
    keys = "model, target, ceiling-percent, expires, issue, reason"
    assert [str(caught.value), *caught.value.others] == [
        "w.yaml: unknown key waivers[0].ceiling. Did you mean ceiling-percent?",
        "w.yaml: waivers[0].issue: expected a text, not 17. Put it in quotes.",
        'w.yaml: waivers[1].ceiling-percent must be a number of percent without a unit, not "8%".',
        f"w.yaml: A waiver has {keys}.",
    ]


@pytest.mark.parametrize(
    "text", ["waivers: [3]", "- a", "waivers: {a: 1}", "waivers:\n", "3", "a: &a [*a]"]
)
def test_a_file_of_another_form_is_one_clear_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^w\.yaml: .*\.$"):
        parse_waivers(text, "w.yaml", TODAY)


def test_ninety_days_are_the_longest() -> None:
    last = TODAY + datetime.timedelta(days=90)
    assert parse_waivers("waivers:" + ENTRY.replace("2026-07-31", str(last)), "w.yaml", TODAY)


VALID = {
    "model": "m.onnx",
    "target": "cpu",
    "ceiling-percent": 8,
    "expires": "2026-07-31",
    "issue": "i",
    "reason": "r",
}
VALUES = st.none() | st.integers() | st.text(max_size=3) | st.floats() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from([*VALID, "ceiling", "zzz"]), VALUES))
def test_what_has_no_problem_is_a_waiver_and_nothing_else(changes: dict[str, object]) -> None:
    entry = VALID | changes
    problems = waiver_problems(entry)
    assert all(each.endswith((".", "?")) for each in problems)
    try:
        msgspec.convert(entry, Waiver)
    except msgspec.ValidationError:
        assert problems
    else:
        assert not problems


@pytest.mark.parametrize("key", VALID)
def test_a_key_that_is_missing_is_named(key: str) -> None:
    entry = {name: value for name, value in VALID.items() if name != key}
    first, form = file_problems({"waivers": [VALID, entry]})
    assert first == f"waivers[1].{key} is missing. Add it."
    assert form == "A waiver has model, target, ceiling-percent, expires, issue, reason."


VALUE = (
    "{model: models/m.onnx, target: cpu, ceiling-percent: 8, issue: https://example.com/17, "
    "reason: 'a wider head, agreed with product'}"
)
COMMIT = "a1b2c3d4e5f60718"


def test_a_trailer_is_a_waiver_that_ends_with_its_pull_request() -> None:
    assert parse_trailers([Trailer(COMMIT, VALUE)], TODAY) == (make_waiver(expires=TODAY),)


def test_the_newest_commit_counts() -> None:
    newest = Trailer(COMMIT, VALUE.replace("percent: 8", "percent: 5"))
    (waiver,) = parse_trailers([newest, Trailer(COMMIT, VALUE)], TODAY)
    assert waiver.ceiling_percent == 5


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("because I say so", "Write {model"),
        ("[" * 100, "Write {model"),
        (VALUE.replace("}", ", expires: 2027-01-01}"), "pull request only"),
        (VALUE.replace("percent: 8", "percent: -1"), "above zero"),
        (VALUE.replace("issue: https://example.com/17, ", ""), "issue is missing. Add it."),
    ],
)
def test_what_cannot_be_understood_is_one_clear_error(value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^Tunegate-Waiver of commit a1b2c3d4e5f6: ") as caught:
        parse_trailers([Trailer(COMMIT, value)], TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


CONFIG = Config(
    models=(
        ModelConfig(path="models/gpu.onnx", targets=("gpu",)),
        ModelConfig(path="models/*.onnx", profiles={"long": ProfileConfig()}),
    ),
    targets=(TargetConfig(name="cpu"), TargetConfig(name="gpu")),
)
MODELS = ("models/m.onnx@long", "models/gpu.onnx")


@pytest.mark.parametrize(
    ("model", "target", "said"),
    [
        ("models/n.onnx", "cpu", "no configured model has this name. Did you mean models/m.onnx?"),
        ("models/m.onnx@lnog", "cpu", "Did you mean models/m.onnx@long?"),
        ("zzz", "cpu", "Known: models/gpu.onnx, models/m.onnx, models/m.onnx@long."),
        ("models/m.onnx", "gpus", "the model has no target gpus. Did you mean gpu?"),
        ("models/gpu.onnx", "zzz", "the model has no target zzz. Known: gpu."),
    ],
)
def test_a_waiver_of_an_unknown_name_is_told_with_what_was_meant(
    model: str, target: str, said: str
) -> None:
    (line,) = stray_waivers([make_waiver(model=model, target=target)] * 2, CONFIG, MODELS)
    assert line.startswith(f"the waiver of {model} on {target} waives nothing: ")
    assert line.endswith(said)


def test_thousands_of_waivers_that_waive_nothing_are_a_few_lines() -> None:
    many = [make_waiver(model=f"{at}.onnx") for at in range(3_000)]
    assert len(merged_waivers([], many, NAME).pending) == len(many)
    lines = [*stray_waivers(many, CONFIG, MODELS)]
    assert (len(lines), lines[-1]) == (21, "more waivers of this file waive nothing")


@pytest.mark.parametrize(
    "model", ["models/m.onnx", "models/m.onnx@long", "models/m.onnx@long (onnxruntime of uv.lock)"]
)
def test_a_model_its_profile_and_its_upgrade_can_be_waived(model: str) -> None:
    assert [*stray_waivers([make_waiver(model=model)], CONFIG, MODELS)] == []


def test_a_waiver_of_another_configurations_model_is_not_told() -> None:
    waivers = [make_waiver(model=f"{folder}/m.onnx") for folder in ("models", "other", "gone")]
    files = ["models/m.onnx", "other/m.onnx"]
    (line,) = stray_waivers(waivers, CONFIG, MODELS, files)
    assert line.startswith("the waiver of gone/m.onnx on cpu")


FIELDS = "model: {}, target: cpu, ceiling-percent: {}, issue: i, reason: r"
FILE = "waivers: [{%s, expires: 2026-07-20}, {%s, expires: 2026-07-20}]\n"
NAME = "tunegate-waivers.yaml"
FROM_HEAD = GateConfig(waivers_from="head")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The file of the latest commit waives a and b, its message waives a for more."""
    made = new_repository(tmp_path / "r")
    made.commit({"m": b"1"})
    text = FILE % (FIELDS.format("a.onnx", 4), FIELDS.format("b.onnx", 4))
    message = "Widen\n\nTunegate-Waiver: {" + FIELDS.format("a.onnx", 9) + "}"
    made.commit({NAME: text.encode()}, message)
    return made


def test_waivers_of_the_head_do_not_count_before_they_are_merged(checkout: Checkout) -> None:
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert found.counting == ()
    assert ceilings(found.pending) == [("a.onnx", 4), ("b.onnx", 4), ("a.onnx", 9)]
    assert [change.effect for change in found.changes] == ["loosened"] * 2


def test_merged_waivers_count(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next")
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert ceilings(found.counting) == [("a.onnx", 4), ("b.onnx", 4)]
    assert (found.pending, found.changes) == ((), ())


def test_waivers_of_the_head_count_where_the_policy_says_so(checkout: Checkout) -> None:
    found = waivers(checkout, "HEAD~1", FROM_HEAD)
    assert ceilings(found.counting) == [("a.onnx", 4), ("b.onnx", 4)]
    assert found.changes == ()


def test_the_higher_ceiling_of_a_commit_and_the_file_counts(checkout: Checkout) -> None:
    gate = GateConfig(waivers_from="head", waiver_trailers=True)
    file_alone = {"a.onnx": 4, "b.onnx": 4}
    assert dict(ceilings(waivers(checkout, "HEAD~1", gate).counting)) == file_alone | {"a.onnx": 9}
    message = "Widen less\n\nTunegate-Waiver: {" + FIELDS.format("b.onnx", 2) + "}"
    checkout.commit({"m": b"2"}, message)
    assert dict(ceilings(waivers(checkout, "HEAD~1", gate).counting)) == file_alone


def test_an_offer_knows_the_files_waiver_behind_a_commits(checkout: Checkout) -> None:
    gate = GateConfig(waivers_from="head", waiver_trailers=True)
    both = waivers(checkout, "HEAD~1", gate)
    assert ("a.onnx", 4) in ceilings(
        tuple(each for each in both.counting if each not in both.signed)
    )


def test_commits_waive_by_the_policy_whatever_counts_of_the_file(checkout: Checkout) -> None:
    found = waivers(checkout, "HEAD~1", GateConfig(waiver_trailers=True))
    assert ceilings(found.counting) == [("a.onnx", 9)]


def test_a_waiver_of_an_earlier_pull_request_is_over(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next")
    gate = GateConfig(waiver_trailers=True)
    both = [("a.onnx", 4), ("b.onnx", 4)]
    assert ceilings(waivers(checkout, "HEAD~1", gate).counting) == both
    assert ceilings(waivers(checkout, None, gate).counting) == both


def test_a_release_is_not_waived_by_the_commits_of_its_pull_requests(checkout: Checkout) -> None:
    head, release = (checkout.git("rev-parse", name) for name in ("HEAD", "HEAD~1"))
    revisions = Revisions(base=release, head=head, release="v1", policy=head)
    gate = GateConfig(waiver_trailers=True)
    found = read_waivers(GitRepository(checkout.path), revisions, gate, TODAY)
    assert ceilings(found.counting) == [("a.onnx", 4), ("b.onnx", 4)]


def test_a_trailer_that_does_not_count_need_not_be_well_written(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next\n\nTunegate-Waiver: later")
    assert waivers(checkout, "HEAD~1", GateConfig()).pending == ()
    with pytest.raises(ConfigError):
        waivers(checkout, "HEAD~1", GateConfig(waiver_trailers=True))


def test_broken_waivers_of_the_base_waive_nothing_and_block_nobody(checkout: Checkout) -> None:
    checkout.commit({NAME: b"\xff"})
    repaired = FILE % (FIELDS.format("a.onnx", 4), FIELDS.format("b.onnx", 4))
    checkout.commit({NAME: repaired.encode()})
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert (found.counting, len(found.pending)) == ((), 2)
    (told,) = found.notes
    before = checkout.git("rev-parse", "HEAD~1")[:12]
    assert told.startswith(f"nothing is waived: in {before}, whose rules judge, {NAME}: not UTF-8")
    assert found.has_unread


def test_a_waiver_that_was_merged_with_its_blanks_is_told(checkout: Checkout) -> None:
    blank = FIELDS.format("a.onnx", 4).replace("issue: i", 'issue: ""')
    checkout.commit({NAME: (FILE % (blank, FIELDS.format("b.onnx", 4))).encode()})
    checkout.commit({NAME: b""})
    (told,) = waivers(checkout, "HEAD~1", GateConfig()).notes
    assert "issue and reason say why. Fill them in." in told


@pytest.mark.parametrize("broken", [b"\xff", b"waivers: 3", b"- {"])
def test_broken_waivers_of_the_head_are_an_error(checkout: Checkout, broken: bytes) -> None:
    checkout.commit({NAME: broken})
    with pytest.raises(ConfigError, match=NAME):
        waivers(checkout, "HEAD~1", GateConfig())


def waivers(checkout: Checkout, base: str | None, gate: GateConfig) -> Waivers:
    commits = [None if name is None else checkout.git("rev-parse", name) for name in (base, "HEAD")]
    revisions = Revisions(base=commits[0], head=str(commits[1]))
    return read_waivers(GitRepository(checkout.path), revisions, gate, TODAY)


def ceilings(found: tuple[Waiver, ...]) -> list[tuple[str, float]]:
    return [(each.model, each.ceiling_percent) for each in found]
