"""Attacks on what counts as a model: weights where nobody looks, and bytes that
are not those that were named."""

import hashlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.adversary.pull_request import MODEL, PullRequest
from tests.support.git_repository import Checkout
from tests.support.models.external_data import lay_out
from tests.support.models.pointer_files import dvc_file_of, keep_in_dvc, keep_in_lfs, lfs_pointer_to
from tests.support.small_onnx import conv_model, model_of, part_of, save, typed

pytestmark = pytest.mark.e2e

TURNS = np.array([20], np.int64)
MORE_TURNS = np.array([40], np.int64)
DETECTED = "  models/m.onnx: modified, {}: {}"


def looping_model(file: str) -> onnx.ModelProto:
    """A model with as many products as a number says that lies in a file."""
    shape = [192, 192]
    number, flag = typed(TensorProto.INT64, []), typed(TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Identity", ["c"], ["again"]),
        helper.make_node("MatMul", ["v", "v"], ["v2"]),
    ]
    body = part_of(nodes, {"i": number, "c": flag, "v": shape}, {"again": flag, "v2": shape})
    turns = lay_out(TensorProto(name="turns", data_type=TensorProto.INT64, dims=[1]), file)
    loop = helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)
    return model_of([loop], {"x": shape}, {"y": shape}, [turns])


def branching_model(file: str) -> onnx.ModelProto:
    """A product with a weight that lies in a file, inside a branch."""
    shape = [192, 192]
    weight = lay_out(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=shape), file)
    product = helper.make_node("MatMul", ["x", "w"], ["made"])
    choice = helper.make_node(
        "If",
        ["c"],
        ["y"],
        then_branch=part_of([product], {}, {"made": shape}, [weight]),
        else_branch=part_of([helper.make_node("Identity", ["x"], ["made"])], {}, {"made": shape}),
    )
    return model_of([choice], {"x": shape, "c": typed(TensorProto.BOOL, [])}, {"y": shape})


def detected(pull_request: PullRequest, *arguments: str) -> str:
    pull_request.workspace.commit()
    return pull_request.workspace.tunegate("detect", "--base", "main", *arguments, code=0).stdout


def test_a_model_made_slower_by_a_number_in_a_hidden_page_fails(pull_request: PullRequest) -> None:
    save(looping_model(".turns.md"), pull_request.root / MODEL)
    turns = pull_request.write("models/.turns.md", "")
    turns.write_bytes(TURNS.tobytes())
    pull_request.commit_base()
    turns.write_bytes(MORE_TURNS.tobytes())
    judged = pull_request.judge()
    assert judged.status() == "fail", judged.report
    assert judged.exit_code == 1


@pytest.mark.parametrize("name", [".w", "w.md", "w.onnx"])
def test_weights_in_a_file_of_any_name_are_weights(pull_request: PullRequest, name: str) -> None:
    save(branching_model(name), pull_request.root / MODEL)
    pull_request.write(f"models/{name}", "1" * 4)
    pull_request.commit_base()
    pull_request.write(f"models/{name}", "2" * 4)
    said = DETECTED.format("weights-only", "the graph is the same, its weights are not")
    assert said in detected(pull_request)


def test_a_model_whose_weight_is_in_two_places_is_an_error(pull_request: PullRequest) -> None:
    """ONNX Runtime would take the numbers in the model, and what was measured were the file's."""
    model = conv_model()
    model.graph.initializer[0].external_data.add(key="location", value="w.bin")
    save(model, pull_request.root / MODEL)
    pull_request.write("models/w.bin", "1" * 4)
    judged = pull_request.judge()
    assert judged.exit_code == 2, judged.out
    assert judged.status() == "error"
    assert "names a data file, and its data location is the model itself" in judged.report


def test_a_data_file_that_becomes_a_link_is_an_error(pull_request: PullRequest) -> None:
    save(branching_model("w.bin"), pull_request.root / MODEL)
    weights = pull_request.write("models/w.bin", "1" * 4)
    pull_request.commit_base()
    weights.unlink()
    weights.symlink_to("/dev/zero")
    judged = pull_request.judge()
    assert (judged.exit_code, judged.status()) == (2, "error")
    (finding,) = judged.verdict["findings"]
    assert finding["reason"].startswith("its data file models/w.bin is a symbolic link in the head")


def test_other_bytes_than_the_lfs_pointer_says_are_an_error(pull_request: PullRequest) -> None:
    harmless, slow = (conv_model(seed=n).SerializeToString() for n in (1, 2))
    (pull_request.root / MODEL).write_bytes(lfs_pointer_to(harmless))
    keep_in_lfs(Checkout(pull_request.root), harmless).write_bytes(slow[: len(harmless)])
    judged = pull_request.judge(code=2)
    oid = hashlib.sha256(harmless).hexdigest()[:12]
    assert f"{MODEL} on cpu: the Git LFS store has other bytes than the pointer says" in judged.err
    assert f"not {oid}" in judged.err


def test_attributes_that_give_users_other_bytes_are_an_error(pull_request: PullRequest) -> None:
    save(branching_model("w.txt"), pull_request.root / MODEL)
    pull_request.write("models/w.txt", "a\nb\n")
    pull_request.commit_base()
    pull_request.write(".gitattributes", "*.txt eol=crlf\n")
    judged = pull_request.judge(code=2)
    said = "models/w.txt: a checkout does not get the committed bytes (.gitattributes: eol=crlf)"
    assert said in judged.err


def test_a_dvc_file_beside_a_model_in_git_is_an_error(pull_request: PullRequest) -> None:
    slow = conv_model(seed=1).SerializeToString()
    pull_request.write(f"{MODEL}.dvc", dvc_file_of(MODEL, slow).decode())
    assert f"{MODEL} on cpu: kept twice, by git and DVC" in pull_request.judge(code=2).err


def test_what_only_git_lfs_takes_for_a_pointer_is_an_error(pull_request: PullRequest) -> None:
    slow = conv_model(seed=2).SerializeToString()
    (pull_request.root / MODEL).write_bytes(lfs_pointer_to(slow).rstrip())
    assert f"{MODEL} on cpu: nearly a Git LFS pointer" in pull_request.judge(code=2).err


def test_other_bytes_than_the_dvc_file_says_are_an_error(pull_request: PullRequest) -> None:
    harmless = conv_model(seed=1).SerializeToString()
    (pull_request.root / MODEL).unlink()
    pull_request.write(f"{MODEL}.dvc", dvc_file_of(MODEL, harmless).decode())
    pull_request.write(".dvc/.gitignore", "cache\n")
    keep_in_dvc(Checkout(pull_request.root), harmless).write_bytes(b"slow")
    judged = pull_request.judge(code=2)
    assert f"{MODEL} on cpu: the DVC cache has 4 bytes, where the pointer says" in judged.err


def test_aliases_in_a_dvc_file_that_stand_for_billions_of_values_are_refused(
    pull_request: PullRequest,
) -> None:
    (pull_request.root / MODEL).unlink()
    lines = [
        "v0: &v0 [x]",
        *(f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * 9)}]" for n in range(1, 15)),
    ]
    pull_request.write(f"{MODEL}.dvc", "\n".join([*lines, "outs: [{path: *v14, md5: x}]"]))
    assert f"{MODEL}.dvc: not a DVC file of this name" in detected(pull_request)


def test_a_glob_that_backtracks_ends(pull_request: PullRequest) -> None:
    glob = "**a" * 20 + "b.onnx"
    pull_request.edit_config("- path: models/*.onnx", f'- path: "{glob}"')
    for name in ("a" * 20 + "b", "a" * 120):
        save(conv_model(), pull_request.root / f"models/{name}.onnx")
    assert f"models/{'a' * 20}b.onnx: added" in detected(pull_request)
