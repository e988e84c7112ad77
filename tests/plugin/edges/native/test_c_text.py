"""The C file of a model says what its program does."""

from __future__ import annotations

from tunegate.edges.native.c_text import c_text, header
from tunegate.edges.native.program import NativeBuffer, NativeCall, NativeProgram, NativeTensor

GIVEN = NativeBuffer("input", 0, (2, 3), 2, 32)
MADE = NativeBuffer("arena", 64, (2, 3), 2, 32)
PROGRAM = NativeProgram(
    inputs=(NativeTensor('a "name"', "float32", GIVEN),),
    outputs=(NativeTensor("y", "float32", MADE),),
    calls=(NativeCall("relu", (GIVEN, MADE)),),
    arena_bytes=128,
    weights=b"",
    threads=1,
)


def test_names_of_tensors_are_quoted() -> None:
    assert r'{"a \"name\"", "float32", 2, input_shape_0, 24}' in c_text(PROGRAM)


def test_inputs_are_copied_behind_the_arena() -> None:
    text = c_text(PROGRAM)
    assert "INPUT_COPIES[] = {128}" in text
    assert "#define ARENA_BYTES 192" in text


def test_calls_stand_in_order_with_their_buffers() -> None:
    text = c_text(PROGRAM)
    assert "{relu, 2}" in text
    assert "{ARENA, 64, {NULL, {1, 0}, 2, {2, 32, 1}, buffer_shape_1, buffer_strides_1, 0}}" in text


def test_the_header_declares_what_every_model_has() -> None:
    assert "int model_run(model* instance" in header()
