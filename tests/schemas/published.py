"""The JSON Schemas that `docs/schemas` publishes, made from the types that read and write.

What a key of `tunegate.yaml` means is said once, in the table of docs/configuration.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Verdict
from tunegate.config import Config

CONFIGURATION = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Node = dict[str, Any]


def published() -> dict[str, Node]:
    """Each schema by the name of its file."""
    return {
        "tunegate.schema.json": config_schema(CONFIGURATION.read_text()),
        "verdict.schema.json": _titled(Verdict, "verdict.json of tunegate"),
        "plan.schema.json": _titled(TuningPlan, "plan.json of tunegate"),
    }


def written(schema: Node) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def config_schema(page: str) -> Node:
    """The schema of `tunegate.yaml`, each key described by its row of the page."""
    schema = _titled(Config, "tunegate.yaml")
    for key, meaning in meanings(page):
        _described(schema, key, meaning)
    return schema


def meanings(page: str) -> Iterator[tuple[str, str]]:
    """The keys of the page's first table, and what they mean in plain text."""
    table = page.partition("| key | default | meaning |\n")[2].partition("\n\n")[0]
    for line in table.splitlines()[1:]:
        keys, _, meaning = line.strip("|").split(" | ", 2)
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning).replace("`", "").strip()
        for key in re.findall(r"`([^`]+)`", keys):
            yield key, plain


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
