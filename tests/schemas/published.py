"""The JSON Schemas that `docs/schemas` publishes, made from the types that read and write.

What a key of `tunegate.yaml` means is said once, where it is declared (`config.py`): the table of
docs/configuration.md is made from it, too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Verdict
from tunegate.config import Config
from tunegate.config_key import DeclaredKey, all_keys, strip_markdown

CONFIGURATION = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLE_HEAD = "| key | default | meaning |\n|---|---|---|\n"
Node = dict[str, Any]


def published() -> dict[str, Node]:
    """Each schema by the name of its file."""
    return {
        "tunegate.schema.json": config_schema(),
        "verdict.schema.json": _titled(Verdict, "verdict.json of tunegate"),
        "plan.schema.json": _titled(TuningPlan, "plan.json of tunegate"),
    }


def written(schema: Node) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def config_schema() -> Node:
    """The schema of `tunegate.yaml`, each key with its meaning."""
    schema = _titled(Config, "tunegate.yaml")
    for declared in all_keys(Config):
        _described(schema, declared.place, strip_markdown(declared.key.meaning))
    return schema


def configuration_page() -> str:
    """Returns docs/configuration.md with the table of all keys as they are declared."""
    before, _, rest = CONFIGURATION.read_text().partition(TABLE_HEAD)
    after = rest[rest.index("\n\n") :]
    rows = (
        f"| `{each.place}` | {_default(each)} | {each.key.meaning} |" for each in all_keys(Config)
    )
    return before + TABLE_HEAD + "\n".join(rows) + after


def _default(declared: DeclaredKey) -> str:
    """The default as somebody would write it; a dash where there is none."""
    value = declared.default
    if declared.key.default:
        return declared.key.default
    if value in (msgspec.NODEFAULT, None, (), {}) or isinstance(value, msgspec.Struct):
        return "–"
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def properties(schema: Node) -> Iterator[tuple[str, str, Node]]:
    """All properties of all structs: the struct, the key, the property."""
    for name, struct in schema["$defs"].items():
        for key, node in struct.get("properties", {}).items():
            yield name, key, node


def _titled(kind: type, title: str) -> Node:
    return {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}


def _described(schema: Node, key: str, meaning: str) -> None:
    node: Node = schema
    for part in key.replace("[]", "").split("."):
        struct = _struct(schema, node)
        node = struct["additionalProperties"] if part == "<name>" else struct["properties"][part]
    node.setdefault("description", meaning)


def _struct(schema: Node, node: Node) -> Node:
    """The mapping that a value is, or has among its forms, or is a list of."""
    while "properties" not in node and not isinstance(node.get("additionalProperties"), dict):
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        elif "anyOf" in node:
            node = next(each for each in node["anyOf"] if "$ref" in each)
        else:
            node = node["items"]
    return node
