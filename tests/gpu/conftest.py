"""Skipped where there is no CUDA device."""

import os
from pathlib import Path

import pytest

from tunegate.system.nvidia.gpus import visible_gpus


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if visible_gpus(os.environ):
        return
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))
