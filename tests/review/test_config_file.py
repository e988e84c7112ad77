"""Reading `tunegate.yaml`: every mistake is one line that says where and what to do."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import Config, GateConfig, ModelConfig, ObjectiveConfig, TargetConfig
from tunegate.errors import USAGE, ConfigError
from tunegate.review.config_file import line_of, load_config, parse_config
from tunegate.review.rules import GATE, TARGET, merged_section, section_changes, yaml_text

MODELS = "models:\n  - path: m.onnx\n"


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_config(text, "tunegate.yaml")
    assert raised.value.exit_code == USAGE
    return str(raised.value).removeprefix("tunegate.yaml: ")


def test_the_shortest_configuration_names_a_model() -> None:
    assert parse_config(MODELS, "x") == Config(models=(ModelConfig(path="m.onnx"),))


def test_every_setting_can_be_given() -> None:
    config = parse_config(
        """
        models:
          - {path: "models/**/*.onnx", inputs: {x: [1, 3, 224, 224]}, targets: [gpu]}
        targets:
          - {name: cpu, cpu: znver4, threads: 8, runner: [self-hosted, big]}
          - {name: gpu, kind: cuda, arch: sm_90, usd-per-hour: 3.5}
        cache: {url: "s3://b/p", endpoint-url: "http://h", region: eu, mode: off, zone: pr,
          read-zones: []}
        budget: {minutes: null, usd: 2, trials: 100, usd-per-hour: 1}
        gate: {margin-percent: 5, seconds: 60, absolute-floor-us: 1, inconclusive: warn, pairs: 8}
        """,
        "x",
    )
    assert config.models[0].inputs == {"x": (1, 3, 224, 224)}
    assert config.targets[1].usd_per_hour == 3.5
    assert (config.cache.mode, config.cache.read_zones) == ("off", ())
    assert (config.budget.minutes, config.budget.trials) == (None, 100)
    assert config.gate.inconclusive == "warn"


def test_no_configuration_says_how_to_get_one(tmp_path: Path) -> None:
    path = tmp_path / "tunegate.yaml"
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert str(raised.value) == f"{path}: not found. Run `tunegate init` to write one."


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "binary.yaml"):
        (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xff")
        with pytest.raises(ConfigError) as raised:
            load_config(path)
        assert str(raised.value).startswith(f"{path}: cannot be read (")
        assert str(raised.value).endswith("Fix the file, or name another with --config.")


def test_a_file_is_read_as_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "tunegate.yaml"
    path.write_text("models:\n  - path: modèles/é.onnx\n", "utf-8-sig")
    assert load_config(path).models[0].path == "modèles/é.onnx"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null"])
def test_an_empty_file_says_what_belongs_in_it(text: str) -> None:
    assert refusal(text) == "empty. `tunegate init --force` writes one."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{}",
            (
                "models is missing. Add it, a list of at least one: the models that are gated: "
                "one entry or more."
            ),
        ),
        ("models: []", "models: expected a list of at least one, not an empty list."),
        ("models:", "models: expected a list of at least one, not nothing."),
        ("models: m.onnx", 'models: expected a list of at least one, not "m.onnx".'),
        ("[]", "the file: expected a mapping, not an empty list."),
        (
            "models: [{path: a, objective: {percentile: 99}}]",
            (
                "models[0].objective.ms is missing. Add it, a number of milliseconds > 0: the "
                "milliseconds that an inference may take."
            ),
        ),
        ("1: 2", "the file: key 1 is not text. Put it in quotes."),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("budjet: {}", "unknown key budjet. Did you mean budget?"),
        ("gate: {margin: 3}", "unknown key gate.margin. Did you mean margin-percent?"),
        ("gate: {margin_percent: 3}", "unknown key gate.margin_percent. Did you mean"),
        ("budget: {zzz: 3}", "unknown key budget.zzz. Remove it."),
        ("targets: [{name: a, thread: 1}]", "unknown key targets[0].thread. Did you mean threads?"),
    ],
)
def test_an_unknown_key_is_named_with_what_it_may_mean(lines: str, message: str) -> None:
    assert refusal(MODELS + lines).startswith(message)


@pytest.mark.parametrize(
    ("section", "key", "value", "number"),
    [
        ("budget", "minutes", "10m", "a number of minutes"),
        ("budget", "minutes", "1:30", "a number of minutes"),
        ("budget", "usd", "$3", "a number of US dollars"),
        ("gate", "margin-percent", "3%", "a number of percent"),
        ("budget", "trials", "2k", "a whole number of trials"),
    ],
)
def test_a_number_has_no_unit(section: str, key: str, value: str, number: str) -> None:
    message = f'{section}.{key} must be {number} without a unit, not "{value}".'
    assert refusal(f"{MODELS}{section}: {{{key}: {value}}}") == message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "gate: {seconds: 1e3}",
            (
                'gate.seconds: expected a number of seconds > 0, not "1e3". YAML wants a point and '
                "a sign: 1.0e+3."
            ),
        ),
        ("budget: {minutes: -1}", "budget.minutes: expected a number of minutes >= 0, not -1."),
        (
            "gate: {margin-percent: 200}",
            "gate.margin-percent: expected a number of percent > 0 and <= 100, not 200.",
        ),
        ("gate: {pairs: 100}", "gate.pairs: expected a whole number >= 4 and <= 24, not 100."),
        (
            "budget: {trials: 1.5}",
            "budget.trials: expected a whole number of trials >= 0, not 1.5.",
        ),
        ("budget: {minutes: true}", "budget.minutes: expected a number of minutes >= 0, not true."),
        ("budget: {minutes: .inf}", "line 3: .inf is not a number that can be used. Fix the line."),
        (
            "targets: [{name: t, kind: cuda, algorithm: im2col}]",
            "targets[0]: algorithm is for kind: llvm, remove it.",
        ),
        ("targets: [{name: t, kind: tpu}]", 'targets[0].kind is cuda or llvm, not "tpu".'),
        ("cache: {mode: rx}", 'cache.mode is off, ro or rw, not "rx".'),
        ("gate: {inconclusive: ok}", 'gate.inconclusive is fail or warn, not "ok".'),
        ("cache: {zone: 1.0}", "cache.zone: expected a text, not 1.0. Put it in quotes."),
        (
            "targets: [{name: ä}]",
            (
                "targets[0].name: expected up to 100 letters, digits, dots, dashes and underscores"
                ', not "ä".'
            ),
        ),
        (
            "targets: [{name: t, threads: 100000}]",
            "targets[0].threads: expected a whole number >= 0 and <= 1024, not 100000.",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_meant(lines: str, message: str) -> None:
    assert refusal(MODELS + lines) == message


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("[1, n]", 'models[0].inputs.x.y[1]: expected a whole number >= 0, not "n".'),
        ("[1, -1]", "models[0].inputs.x.y[1]: expected a whole number >= 0, not -1."),
        ("3", "models[0].inputs.x.y: expected a list or a mapping, not 3."),
    ],
)
def test_a_wrong_shape_names_its_input(shape: str, message: str) -> None:
    assert refusal(f"models: [{{path: m, inputs: {{a: [1], x.y: {shape}}}}}]") == message


def test_an_unknown_target_is_named_with_those_known() -> None:
    text = "models: [{path: m.onnx, targets: [gpu]}]\ntargets: [{name: a}, {name: b}]"
    assert refusal(text) == 'models: m.onnx: unknown target "gpu". Known: a, b.'


def test_a_target_given_twice_is_refused() -> None:
    assert refusal(MODELS + "targets: [{name: a}, {name: a}]") == (
        'targets: the name "a" is given 2 times. Rename one.'
    )


def test_money_without_a_price_is_refused() -> None:
    priced = "targets: [{name: a, usd-per-hour: 1}, {name: b}]\nbudget: {usd: 1}"
    assert refusal(MODELS + priced) == (
        "budget.usd needs a price: give usd-per-hour under budget, or on target b."
    )


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("ftp://x/y", 'no store is installed for "ftp:". Write a directory or one of file:, '),
        ("https://bucket.example.org", 'no store is installed for "https:". Write a directory or'),
        ("s3://", "write s3://bucket/prefix."),
        ("s3://[", "Invalid IPv6 URL."),
    ],
)
def test_a_cache_of_no_known_kind_is_refused(url: str, advice: str) -> None:
    told = refusal(f"{MODELS}cache: {{url: '{url}'}}")
    assert told.startswith(f'cache.url: "{url}" is not a cache address')
    assert advice in told


@given(st.text())
def test_no_text_is_a_crash_and_every_refusal_is_one_line(text: str) -> None:
    assert "\n" not in told_of(text)


def told_of(text: str) -> str:
    """The text of the refusal, "" where there is none."""
    try:
        parse_config(text, "x")
    except ConfigError as error:
        return str(error)
    return ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("ab[]. `-\n", max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["path", "inputs", "name", "a.b", "trials"]), inner)
        ),
        max_leaves=8,
    ),
    st.sampled_from(["models", "targets", "cache", "budget", "gate", "odd\nkey"]),
)
def test_no_value_is_a_crash(value: object, section: str) -> None:
    # JSON is YAML, so this writes any value on one line.
    assert "\n" not in told_of(json.dumps({"models": [{"path": "m"}], section: value}))


def test_a_share_that_nobody_can_look_for_is_refused() -> None:
    text = MODELS + "gate:\n  rare-launches: {}\n"
    assert "the rarest share that can be looked for" in refusal(text.format(0.001))
    assert parse_config(text.format(0), "x").gate.rare_launches == 0.0
    assert parse_config(text.format(0.05), "x").gate.rare_launches == 0.05


def test_a_runtime_that_is_not_installed_is_told_with_those_that_are() -> None:
    text = MODELS + "targets: [{name: a, runtime: onnxruntme}]"
    told, _, known = refusal(text).partition(" Write one of ")
    assert told == "target a: runtime onnxruntme is not installed."
    assert set(known.removesuffix(".").split(", ")) >= {"auto", "onnxruntime", "openvino", "tvm"}


def test_a_configuration_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than 16 MiB"):
        load_config(Path("/dev/zero"))


def test_an_executor_that_nobody_knows_is_refused_and_one_of_an_extra_is_not() -> None:
    text = "models: [{path: m.onnx}]\nexecutor: NAME\n"
    assert parse_config(text.replace("NAME", "ray"), "x").executor == "ray"
    with pytest.raises(ConfigError, match=r"executor: rai is not installed\. Write one of local"):
        parse_config(text.replace("NAME", "rai"), "x")


TEXT = """\
models:
  - path: a
  - path: b
    inputs: {x: [1]}
gate:
  pairs: 4
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("gate", 5),
        ("gate.pairs", 6),
        ("models[1].inputs", 4),
        ("models[1]", 3),
        ("gate.unknown", 5),
        ("models[9].path", 1),
        ("", 1),
    ],
)
def test_a_key_has_the_line_of_what_is_nearest_to_it(key: str, line: int) -> None:
    assert line_of(TEXT, key) == line


@pytest.mark.parametrize("text", ["", "a: [", "- 1"])
def test_a_text_without_the_key_has_its_first_line(text: str) -> None:
    assert line_of(text, "gate.pairs") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not set"),
        (3.0, "3"),
        (0.5, "0.5"),
        (True, "true"),
        ("warn", "warn"),
        ((1, 128), "[1, 128]"),
        ({"x": (1, 2)}, "{x: [1, 2]}"),
        (ObjectiveConfig(ms=20), "{ms: 20, percentile: 99}"),
    ],
)
def test_a_value_is_written_as_in_the_file(value: object, text: str) -> None:
    assert yaml_text(value) == text


gates = st.builds(
    GateConfig,
    margin_percent=st.sampled_from([1.0, 3.0, 60.0]),
    seconds=st.sampled_from([30.0, 60.0]),
    inconclusive=st.sampled_from(["fail", "warn"]),
    size_margin_percent=st.none() | st.sampled_from([5.0, 10.0]),
)


def gate_changes(base: GateConfig, head: GateConfig) -> list[PolicyChange]:
    return list(section_changes(base, head, GATE, "gate", model="m.onnx"))


def target_changes(base: TargetConfig, head: TargetConfig) -> list[PolicyChange]:
    return list(section_changes(base, head, TARGET, "targets[]", target=base.name))


def test_the_stricter_value_of_an_ordered_key_judges_whoever_wrote_it() -> None:
    strict, loose = GateConfig(margin_percent=1.0), GateConfig(margin_percent=60.0)
    assert merged_section(strict, loose, GATE).margin_percent == 1.0
    assert merged_section(loose, strict, GATE).margin_percent == 1.0


def test_the_base_decides_a_key_without_an_order() -> None:
    assert merged_section(GateConfig(seconds=30.0), GateConfig(seconds=60.0), GATE).seconds == 30.0


def test_the_head_may_fill_what_the_base_has_left_open_and_only_that() -> None:
    unpriced, priced = TargetConfig(name="cpu"), TargetConfig(name="cpu", usd_per_hour=2.0)
    dearer = TargetConfig(name="cpu", usd_per_hour=9.0)
    assert merged_section(unpriced, priced, TARGET).usd_per_hour == 2.0
    assert merged_section(priced, dearer, TARGET).usd_per_hour == 2.0


@given(gates, gates)
def test_no_change_is_told_of_equal_sections_and_one_of_every_key_that_differs(
    base: GateConfig, head: GateConfig
) -> None:
    fields = [field.name for field in msgspec.structs.fields(base)]
    differing = [name for name in fields if getattr(base, name) != getattr(head, name)]
    assert len(gate_changes(base, head)) == len(differing)
    assert gate_changes(base, base) == []


@pytest.mark.parametrize(
    ("new", "effect", "counts"), [(1.0, "tightened", "now"), (60.0, "loosened", "once merged")]
)
def test_a_stricter_value_counts_now_and_a_looser_one_once_merged(
    new: float, effect: str, counts: str
) -> None:
    (change,) = gate_changes(GateConfig(margin_percent=3.0), GateConfig(margin_percent=new))
    assert (change.key, change.model) == ("gate.margin-percent", "m.onnx")
    assert (change.old, change.new) == ("3", f"{new:g}")
    assert (change.effect, change.counts) == (effect, counts)


def test_a_key_without_an_order_is_changed_and_counts_once_merged() -> None:
    (change,) = gate_changes(GateConfig(seconds=30.0), GateConfig(seconds=60.0))
    assert (change.effect, change.counts) == ("changed", "once merged")


def test_filling_tightens_clearing_loosens_and_another_value_changes() -> None:
    unpriced, priced = TargetConfig(name="cpu"), TargetConfig(name="cpu", usd_per_hour=2.0)
    dearer = TargetConfig(name="cpu", usd_per_hour=9.0)
    effects = [
        (change.effect, change.counts)
        for pair in ((unpriced, priced), (priced, unpriced), (priced, dearer))
        for change in target_changes(*pair)
    ]
    expected = [("tightened", "now"), ("loosened", "once merged"), ("changed", "once merged")]
    assert effects == expected
