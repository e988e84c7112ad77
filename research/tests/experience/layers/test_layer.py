from __future__ import annotations

import msgspec
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.experience.layers.layer import ModelLayer, Scale, scaled
from research.experience.layers.layer_model import layer_model

CONVOLUTION = ModelLayer(
    operator="Conv",
    kind="convolution",
    operands=((1, 16, 14, 14), (32, 16, 3, 3), (32,)),
    constants=(1, 2),
    attributes={"pads": (1, 1, 1, 1), "strides": (1, 2)},
    follows=("Relu",),
)
GROUPED = ModelLayer(
    operator="Conv",
    kind="grouped",
    operands=((1, 32, 14, 14), (64, 8, 3, 3)),
    constants=(1,),
    attributes={"pads": (1, 1, 1, 1), "group": 4},
)
DEPTHWISE = ModelLayer(
    operator="Conv",
    kind="depthwise",
    operands=((1, 32, 14, 14), (32, 1, 3, 3)),
    constants=(1,),
    attributes={"pads": (1, 1, 1, 1), "group": 32},
)
PRODUCT = ModelLayer(
    operator="MatMul",
    kind="product",
    operands=((1, 64, 128), (128, 256)),
    constants=(1,),
    follows=("bias", "residual"),
)
SCORES = ModelLayer(
    operator="MatMul", kind="batched-product", operands=((1, 4, 64, 32), (1, 4, 32, 64))
)
GEMM = ModelLayer(
    operator="Gemm",
    kind="product",
    operands=((1, 128), (256, 128), (256,)),
    constants=(1, 2),
    attributes={"transB": 1},
)
LAYERS = (CONVOLUTION, GROUPED, DEPTHWISE, PRODUCT, SCORES, GEMM)


@given(
    st.sampled_from(LAYERS),
    st.builds(
        Scale,
        batch=st.sampled_from((1.0, 2.0)),
        channels=st.floats(0.3, 3),
        extents=st.floats(0.3, 3),
    ),
)
def test_scaled_sizes_still_belong_together(layer: ModelLayer, scale: Scale) -> None:
    made = layer_model(scaled(layer, scale))
    onnx.checker.check_model(made, full_check=True)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_is_not_scaled_is_itself(layer: ModelLayer) -> None:
    assert scaled(layer, Scale()).operands == layer.operands


def test_groups_stay_and_a_depthwise_convolution_stays_one() -> None:
    wider = scaled(GROUPED, Scale(channels=2.0))
    assert (wider.group, wider.operands[0][1], wider.operands[1]) == (4, 64, (128, 16, 3, 3))
    deeper = scaled(DEPTHWISE, Scale(channels=2.0))
    assert (deeper.group, deeper.operands[1]) == (64, (64, 1, 3, 3))


def test_both_dimensions_of_scores_are_as_long_as_the_sequence() -> None:
    longer = scaled(SCORES, Scale(extents=2.0))
    assert longer.operands == ((1, 4, 128, 32), (1, 4, 32, 128))


@pytest.mark.parametrize(
    ("layer", "operations"),
    [
        (CONVOLUTION, 2 * 14 * 7 * 32 * 16 * 9),
        (DEPTHWISE, 2 * 14 * 14 * 32 * 9),
        (PRODUCT, 2 * 64 * 128 * 256),
        (SCORES, 2 * 4 * 64 * 32 * 64),
        (GEMM, 2 * 128 * 256),
    ],
)
def test_operations_are_those_of_one_call(layer: ModelLayer, operations: int) -> None:
    assert layer.operations == operations


def test_equal_layers_have_one_digest_and_a_name_without_the_model() -> None:
    assert CONVOLUTION.digest == msgspec.structs.replace(CONVOLUTION).digest
    assert len({layer.digest for layer in LAYERS}) == len(LAYERS)
    assert GROUPED.name == "grouped 1x32x14x14 64x8x3x3 in 4 groups"
