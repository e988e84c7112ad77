"""A verdict as the model card of a CycloneDX bill of materials: latency changes as performance
metrics with their intervals (https://cyclonedx.org/docs/1.6/json/). The format has no field for a
verdict, so it is a property, for each target. Pure."""

from __future__ import annotations

import msgspec

from tunegate_deploy.evidence.statement import JudgedCell, Statement


def bill_of_materials(statement: Statement) -> bytes:
    """Returns a CycloneDX 1.6 document with a component for each judged model."""
    found = statement.predicate
    models = dict.fromkeys(each.model for each in found.findings)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": found.finished_at,
            "tools": {
                "components": [
                    {"type": "application", "name": "tunegate", "version": found.tool_version}
                ]
            },
        },
        "components": [_component(statement, model) for model in models],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _component(statement: Statement, model: str) -> dict[str, object]:
    digests = {each.name: each.digest["sha256"] for each in statement.subject}
    digest = digests.get(f"head:{model}")
    cells = [each for each in statement.predicate.findings if each.model == model]
    metrics = [metric for each in cells for metric in _metrics(each)]
    verdicts = [{"name": f"tunegate:status:{x.target}", "value": x.status} for x in cells]
    return {
        "type": "machine-learning-model",
        "name": model,
        "version": statement.predicate.head,
        **({"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}),
        "modelCard": {
            "quantitativeAnalysis": {"performanceMetrics": metrics},
            "properties": verdicts,
        },
    }


def _metrics(cell: JudgedCell) -> list[dict[str, object]]:
    metrics: list[dict[str, object]] = []
    if cell.head_ms is not None:
        metrics.append(
            {"type": "median latency, ms", "value": f"{cell.head_ms:.6g}", "slice": cell.target}
        )
    if cell.interval_percent is not None:
        change = cell.interval_percent
        metrics.append(
            {
                "type": "change of the median latency against the base, percent",
                "value": f"{change.center:.3f}",
                "slice": cell.target,
                "confidenceInterval": {
                    "lowerBound": f"{change.low:.3f}",
                    "upperBound": f"{change.high:.3f}",
                },
            }
        )
    return metrics
