"""The C file of a model says what its program does."""

from __future__ import annotations

import msgspec

from tunegate_whole_model.native.c_text import c_text, header
from tunegate_whole_model.native.program import (
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
)
from tunegate_whole_model.stages.steps import Barrier, Run

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
    assert r'{"a \042name\042", "float32", 2, input_shape_0, 24}' in c_text(PROGRAM)


def test_every_name_is_a_string_of_c() -> None:
    """A sign beyond 16 bits and a control character compile, and no trigraph ends the string."""
    named = NativeTensor('\U0001f600\x7f??/", x', "float32", GIVEN)
    text = c_text(msgspec.structs.replace(PROGRAM, inputs=(named,)))
    assert r'{"\360\237\230\200\177\077\077/\042, x", "float32", 2' in text


def test_inputs_are_copied_behind_the_arena() -> None:
    text = c_text(PROGRAM)
    assert "INPUT_COPIES[] = {128}" in text
    assert "#define ARENA_BYTES 192" in text


def test_calls_stand_in_order_with_their_buffers() -> None:
    text = c_text(PROGRAM)
    assert "{relu, 0, 2, 0}" in text
    assert "{ARENA, 64, {NULL, {1, 0}, 2, {2, 32, 1}, buffer_shape_1, buffer_strides_1, 0}}" in text


def test_the_steps_of_each_thread_stand_one_after_the_other() -> None:
    program = msgspec.structs.replace(
        PROGRAM,
        calls=(NativeCall("relu", (GIVEN, MADE), has_share=True),) * 2,
        threads=2,
        pieces=((0,), (1,)),
        steps=((Run(0, 0, 5), Barrier(0), Run(1, 0, 1)), (Run(0, 5, 9), Barrier(0))),
    )
    text = c_text(program)
    assert "{relu, 2, 2, 1}" in text
    assert "STEPS[] = {\n  {0, 0, 5},\n  {-1, 0, 0},\n  {1, 0, 1},\n  {0, 5, 9}," in text
    assert "STEP_BEGINS[] = {0, 3, 5}" in text
    assert "PIECES[] = {\n  {0, 1},\n  {1, 2},\n}" in text


def test_the_header_declares_what_every_model_has() -> None:
    assert "int model_run(model* instance" in header()
