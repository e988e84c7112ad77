"""Tests for a real GPU that say nothing of speed run on the stand-in, too."""

import sys
from pathlib import Path

import pytest

from tests.cuda_stand_in.fixtures import WhatCuda
from tests.support.programs import run_program

_CHECKOUT = Path(__file__).resolve().parents[2]
_WITHOUT_SPEED = (
    "test_the_driver_tells_the_state_of_the_device",
    "test_a_block_may_use_the_shared_memory_that_the_card_offers",
    "test_a_transformer_built_for_the_device_computes_what_it_should",
)


@pytest.mark.cuda_stand_in
@pytest.mark.gpu_job
@pytest.mark.timeout(1200)
def test_tests_for_a_gpu_that_measure_nothing_pass(cuda_stand_in: WhatCuda) -> None:
    done = run_program(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu"),
            *("tests/gpu", "-k", " or ".join(_WITHOUT_SPEED)),
        ],
        cwd=_CHECKOUT,
        env=cuda_stand_in(),
    )
    assert f"{len(_WITHOUT_SPEED)} passed" in done.stdout, done.stdout
