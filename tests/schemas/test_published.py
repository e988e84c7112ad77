import json

import jsonschema
import pytest
import yaml

from tests.schemas.published import configuration_page, properties, published, written
from tests.support.golden import Golden
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.artifact_io import seal

SCHEMAS = published()


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_what_the_types_say(name: str, golden: Golden) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    golden.check(f"../../docs/schemas/{name}", written(SCHEMAS[name]))


def test_every_key_of_the_configuration_is_described() -> None:
    found = properties(SCHEMAS["tunegate.schema.json"])
    silent = [f"{struct}.{key}" for struct, key, node in found if "description" not in node]
    assert not silent, "give each a Key in config.py"


def test_the_table_of_the_documentation_is_what_is_declared(golden: Golden) -> None:
    golden.check("../../docs/configuration.md", configuration_page())


def test_an_editor_refuses_what_the_reader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS["tunegate.schema.json"])
    assert validator.is_valid(yaml.safe_load("models: [{path: m.onnx}]\ngate: {margin-percent: 3}"))
    for bad in ("{}", "models: [{path: m.onnx}]\ngate: {margin: 3}", "models: [{pat: m.onnx}]"):
        assert not validator.is_valid(yaml.safe_load(bad))


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_that_was_written_is_valid(kind: str) -> None:
    written_verdict = json.loads(seal(make_report(kind).verdict))
    jsonschema.Draft202012Validator(SCHEMAS["verdict.schema.json"]).validate(written_verdict)
