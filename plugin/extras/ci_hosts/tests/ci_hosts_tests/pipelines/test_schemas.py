from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.documentation import require_valid

PIPELINES = Path(__file__).resolve().parents[3] / "pipelines"
OF_AZURE = ("--data-transform", "azure-pipelines", "--regex-variant", "python")


@pytest.mark.parametrize(
    ("schema", "files", "options"),
    [
        ("vendor.buildkite", ["buildkite/pipeline.yml"], ()),
        (
            "vendor.azure-pipelines",
            ["azure/tunegate.yml", "azure/azure-pipelines.yml"],
            OF_AZURE,
        ),
        ("vendor.circle-ci", ["circleci/orb.yml", "circleci/config.yml"], ()),
        ("vendor.bitbucket-pipelines", ["bitbucket/bitbucket-pipelines.yml"], ()),
    ],
)
def test_pipeline_files_are_valid_for_their_schemas(
    schema: str, files: list[str], options: tuple[str, ...]
) -> None:
    require_valid(schema, [PIPELINES / file for file in files], *options)
