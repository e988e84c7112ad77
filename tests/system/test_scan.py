"""The data files that a model names, wherever in it; and the bounds on a model."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.support.models.external_data import lay_out, model_with_data
from tests.support.small_onnx import conv_model, model_of, save
from tunegate.errors import ModelError, UnreadModelError
from tunegate.models.reference.session import ReferenceSession
from tunegate.system import onnx_scan
from tunegate.system.onnx_scan import data_files, parsed_model


def test_a_file_that_is_another_model_for_who_loads_its_bytes_is_refused() -> None:
    """The mark of ONNX Runtime's own format, in a name that an ONNX file may begin with."""
    model = conv_model()
    model.ir_version, model.producer_name = 8, "ORTM"
    content = model.SerializeToString()
    assert content[4:8] == b"ORTM"
    with pytest.raises(ModelError, match="ONNX Runtime's own format"):
        data_files(content)


def test_data_of_a_function_and_of_a_list_of_tensors_is_named() -> None:
    model = conv_model()
    constant = helper.make_node(
        "Constant", [], ["c"], value=lay_out(TensorProto(name="t"), "function.bin")
    )
    model.functions.add().node.append(constant)
    node = model.functions[0].node[0]
    node.attribute.append(
        helper.make_attribute("many", [lay_out(TensorProto(name="t"), "list.bin")])
    )
    assert data_files(model.SerializeToString()) == ("function.bin", "list.bin")


def test_more_data_files_than_are_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_scan, "_MAX_DATA_FILES", 1)
    model = onnx.load_from_string(model_with_data("w"))
    lay_out(model.graph.initializer.add(name="same"), "w")
    assert data_files(model.SerializeToString()) == ("w",)
    lay_out(model.graph.initializer.add(name="other"), "v")
    with pytest.raises(
        UnreadModelError, match=r"^it names 2 data files, more than 1: keep several"
    ):
        data_files(model.SerializeToString())


@pytest.mark.parametrize(
    "location", ["../w", "/etc/passwd", "a/../../w", "a/../w", "", ".", "..", "w/", "w/."]
)
def test_a_path_out_of_the_models_directory_is_refused(location: str) -> None:
    with pytest.raises(ModelError) as raised:
        data_files(model_with_data(location))
    wrong = "lies outside the model's directory"
    if location == "a/../w":
        wrong = "is named by a path with '..' in it"
    assert str(raised.value) == f"its external data file {location!r} {wrong}"


def in_an_initializer(model: onnx.ModelProto, tensor: TensorProto) -> None:
    model.graph.initializer.append(tensor)


def in_a_sparse_initializer(model: onnx.ModelProto, tensor: TensorProto) -> None:
    model.graph.sparse_initializer.add().indices.CopyFrom(tensor)


def in_a_constant(model: onnx.ModelProto, tensor: TensorProto) -> None:
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))


def in_a_sparse_constant(model: onnx.ModelProto, tensor: TensorProto) -> None:
    attribute = model.graph.node[0].attribute.add(
        name="sparse", type=onnx.AttributeProto.SPARSE_TENSOR
    )
    attribute.sparse_tensor.values.CopyFrom(tensor)


def in_a_branch(model: onnx.ModelProto, tensor: TensorProto) -> None:
    branch = helper.make_graph([], "branch", [], [], [tensor])
    model.graph.node.append(helper.make_node("If", ["c"], ["y"], then_branch=branch))


def in_a_branch_of_a_branch(model: onnx.ModelProto, tensor: TensorProto) -> None:
    inner = onnx.ModelProto()
    in_a_branch(inner, tensor)
    model.graph.node.append(helper.make_node("If", ["c"], ["y"], else_branch=inner.graph))


def in_one_of_many_graphs(model: onnx.ModelProto, tensor: TensorProto) -> None:
    attribute = model.graph.node[0].attribute.add(name="many", type=onnx.AttributeProto.GRAPHS)
    attribute.graphs.add().initializer.append(tensor)


def in_a_function(model: onnx.ModelProto, tensor: TensorProto) -> None:
    in_a_constant(model, tensor)
    model.functions.add().node.append(model.graph.node.pop())


def in_a_default_of_a_function(model: onnx.ModelProto, tensor: TensorProto) -> None:
    model.functions.add().attribute_proto.append(helper.make_attribute("default", tensor))


def in_what_is_for_training(model: onnx.ModelProto, tensor: TensorProto) -> None:
    model.training_info.add().initialization.initializer.append(tensor)


@pytest.mark.parametrize(
    "put",
    [
        *(in_an_initializer, in_a_sparse_initializer, in_a_constant, in_a_sparse_constant),
        *(in_a_branch, in_a_branch_of_a_branch, in_one_of_many_graphs, in_a_function),
        *(in_a_default_of_a_function, in_what_is_for_training),
    ],
    ids=lambda put: put.__name__,
)
def test_a_data_file_is_found_wherever_the_tensor_stands(
    put: Callable[[onnx.ModelProto, TensorProto], None],
) -> None:
    model = conv_model()
    put(model, lay_out(TensorProto(name="w"), "weights.md"))
    assert data_files(model.SerializeToString()) == ("weights.md",)


# contradictions -------------------------------------------------------------------


IN_THE_MODEL = "names a data file, and its data location is the model itself"
IN_BOTH = "has numbers both in the model and in a data file"
TWICE = "names its data file, or the place in it, twice"
NO_NUMBER = "has an offset or a length in its data file that is not a number"
NOT_TAKEN = "has 'basepath' for its data file, which ONNX Runtime does not take"


def placed(*said: str) -> dict[str, Any]:
    """Fields of a tensor with these sayings of where its numbers lie."""
    pairs = [each.partition("=") for each in said]
    return {"external_data": [{"key": key, "value": value} for key, _, value in pairs]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"data_location": TensorProto.DEFAULT}, IN_THE_MODEL),
        ({"data_location": None, "raw_data": b"0000"}, IN_THE_MODEL),
        ({"raw_data": b"0000"}, IN_BOTH),
        ({"float_data": [0.0]}, IN_BOTH),
        (placed("location=w.bin", "location=other.bin"), TWICE),
        (placed("location=w.bin", "offset=0", "offset=4"), TWICE),
        (placed("location=w.bin", "offset=1_0"), NO_NUMBER),
        (placed("location=w.bin", "length=-4"), NO_NUMBER),
        (placed("location=w.bin", "basepath=/"), NOT_TAKEN),
        (placed(), "has its numbers in a data file, and names none"),
        (placed("location=*/_ORT_MEM_ADDR_/*"), "names an address in memory for its data"),
    ],
)
@pytest.mark.parametrize("put", [in_an_initializer, in_a_branch, in_a_sparse_constant])
def test_a_tensor_whose_numbers_are_in_two_places_is_refused(
    put: Callable[[onnx.ModelProto, TensorProto], None], fields: dict[str, Any], problem: str
) -> None:
    in_a_file = {"data_location": TensorProto.EXTERNAL, **placed("location=w.bin")}
    model = conv_model()
    put(model, TensorProto(name="w", **{**in_a_file, **fields}))
    with pytest.raises(ModelError) as raised:
        data_files(model.SerializeToString())
    assert str(raised.value) == f"its tensor 'w' {problem}"


@pytest.mark.parametrize("key", ["checksum", "prepacked_0", "basepath"])
def test_a_key_of_external_data_is_taken_where_onnx_runtime_takes_it(
    key: str, tmp_path: Path
) -> None:
    (tmp_path / "w.bin").write_bytes(b"0000")
    placement = placed("location=w.bin", f"{key}=0")
    tensor = TensorProto(
        name="w",
        data_type=TensorProto.FLOAT,
        dims=[1],
        data_location=TensorProto.EXTERNAL,
        **placement,
    )
    node = helper.make_node("Identity", ["w"], ["y"])
    file = save(model_of([node], {}, {"y": [1]}, [tensor]), tmp_path / "m.onnx")
    is_taken = key != "basepath"
    with nullcontext() if is_taken else pytest.raises(ModelError, match="has 'basepath' for"):
        assert data_files(file.read_bytes()) == ("w.bin",)
    with nullcontext() if is_taken else pytest.raises(Exception, match="model format error"):
        ReferenceSession(file)


def test_one_tensor_that_is_written_in_two_halves_is_read_as_the_one_that_it_becomes() -> None:
    """Protobuf joins a message that comes twice: each half alone contradicts nothing."""
    halves = [TensorProto(name="w", raw_data=b"0000"), lay_out(TensorProto(name="w"), "w.bin")]
    attribute = b"".join(onnx.AttributeProto(t=half).SerializeToString() for half in halves)
    joined = onnx.AttributeProto.FromString(attribute)
    assert joined.t.raw_data
    assert joined.t.external_data
    node = b"\x2a" + bytes([len(attribute)]) + attribute
    graph = b"\x0a" + bytes([len(node)]) + node
    with pytest.raises(ModelError, match=r"^its tensor 'w' has numbers both in the model and in"):
        data_files(b"\x3a" + bytes([len(graph)]) + graph)


# how much ------------------------------------------------------------------------


@given(st.binary(max_size=100))
def test_what_is_said_to_fit_together_is_what_protobuf_takes(noise: bytes) -> None:
    try:
        data_files(noise)
    except ModelError:
        return
    try:
        onnx.ModelProto.FromString(noise)
    except DecodeError:
        return  # it looks at more, such as the text of names


TOO_MUCH = (
    "takes more than 0 MiB of memory to be read: it has very many small parts, or packed numbers "
    "that belong in raw_data"
)


def in_graph(field: int, content: bytes) -> bytes:
    part = bytes([field << 3 | 2]) + varint(len(content)) + content
    return b"\x3a" + varint(len(part)) + part


def numbers(packed: bytes) -> bytes:
    """A model whose one node has an attribute of these bytes."""
    attribute = b"\x2a" + varint(len(packed)) + packed
    return in_graph(1, attribute)


def test_a_file_of_millions_of_empty_nodes_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes each, and a hundred and fifty when parsed."""
    monkeypatch.setattr(onnx_scan, "_MIN_PARSED_BYTES", 100_000)
    nodes = b"\x0a\x00" * 2000
    refused(b"\x3a" + varint(len(nodes)) + nodes, f"it has 0.0 MB and {TOO_MUCH}")


def test_a_file_that_takes_long_to_scan_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[bytes] = []
    scan = onnx_scan._has_external_data

    def counted(data: bytes) -> bool:
        scanned.append(data)
        return scan(data)

    monkeypatch.setattr(onnx_scan, "_has_external_data", counted)
    monkeypatch.setattr(onnx_scan, "_slow", {})
    one, other = (numbers(b"\x42" + varint(50) + bytes([n] * 50)) for n in (0, 1))
    for seconds, times in ((9.0, 6), (-1.0, 2)):
        monkeypatch.setattr(onnx_scan, "_SLOW_SECONDS", seconds)
        scanned.clear()
        assert [onnx_scan.data_files(each) for each in (one, other) * 3] == [()] * 6
        assert len(scanned) == times


def test_packed_numbers_of_one_byte_each_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros weigh nothing in git, one byte in the file, and eight or sixteen when parsed."""
    monkeypatch.setattr(onnx_scan, "_MIN_PARSED_BYTES", 100_000)
    packed = b"\x42" + varint(50_000) + bytes(50_000)
    refused(numbers(packed), f"it has 0.1 MB and {TOO_MUCH}")


def test_the_lists_of_a_forest_are_read_however_many_numbers_they_have() -> None:
    """Half a million tree nodes have five million numbers, each behind a tag of its own."""
    ids, weights = [*range(1_000_000)], [0.5] * 1_000_000
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["y"], ids=ids, weights=weights)
    model = conv_model()
    model.graph.node.append(node)
    assert data_files(model.SerializeToString()) == ()


def test_a_list_that_ends_within_a_number_is_no_model() -> None:
    refused(numbers(b"\x40\x01\x40\x80"), "not an ONNX file, or cut short")
    refused(numbers(b"\x3d\x01\x01\x01\x01\x3d\x01"), "not an ONNX file, or cut short")


def test_a_graph_nested_without_end_is_not_parsed() -> None:
    nested = b""
    for _ in range(200):
        for field in (6, 5, 1):  # the graph of an attribute of a node of a graph
            nested = bytes([field << 3 | 2]) + varint(len(nested)) + nested
    refused(b"\x3a" + varint(len(nested)) + nested, "it is nested more than 100 levels deep")


@pytest.mark.parametrize("name", [b"\xff\x80", b"\xed\xb2\x80"])
def test_a_name_that_is_no_text_is_refused_before_anyone_reads_it(name: bytes) -> None:
    """Protobuf gives such a name as bytes."""
    model = conv_model()
    model.graph.node[0].name = "N" * len(name)
    changed = model.SerializeToString().replace(b"N" * len(name), name)
    refused(changed, f"it has a name that is not UTF-8: {name!r}")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_operators_of_two_versions_are_refused(domain: str) -> None:
    model = conv_model()
    model.opset_import.append(helper.make_opsetid(domain, 11))
    with pytest.raises(ModelError, match="it imports versions 17 and 11 of ONNX's operators"):
        parsed_model(model.SerializeToString())


def test_functions_that_become_a_million_nodes_are_counted_and_not_inlined() -> None:
    refused_once_parsed(
        doubling_functions(17), r"65,536 nodes \(131,071 calls, levels: 17\).*onnx.inliner"
    )
    refused_once_parsed(doubling_functions(2000), "become 1,000,000,000,000 nodes")
    assert len(parsed_model(doubling_functions(12)).functions) == 12


def test_functions_of_an_honest_model_are_not_too_many() -> None:
    """32 layers in one function, whose operators are functions again."""
    operators = [function_of(number, chain("Neg", "", 8)) for number in range(80)]
    layer = function_of(80, [node for n in range(80) for node in chain(f"f{n}", "my", 1)])
    parsed_model(calling(chain("f80", "my", 32), [*operators, layer]))


def test_levels_of_functions_count_for_each_node_that_is_in_them() -> None:
    """ONNX Runtime goes through the whole graph again for each level."""

    def nested(levels: int, nodes: int) -> bytes:
        bodies = [
            [*chain("Neg", "", nodes), *(chain(f"f{number - 1}", "my", 1) if number else [])]
            for number in range(levels)
        ]
        return calling(
            chain(f"f{levels - 1}", "my", 1), [function_of(*e) for e in enumerate(bodies)]
        )

    parsed_model(nested(100, 10))
    parsed_model(nested(10, 1000))
    refused_once_parsed(nested(1000, 1), "become 1,000 nodes .1,000 calls, levels: 1,000")
    refused_once_parsed(nested(99, 200), "become 19,800 nodes .99 calls, levels: 99")


def test_constants_in_functions_count_for_each_other() -> None:
    """ONNX Runtime looks for each among all."""

    def constants(calls: int) -> bytes:
        body = [helper.make_node("Constant", [], [f"c{n}"], value_int=n) for n in range(10)]
        return calling(chain("f0", "my", calls), [function_of(0, body)])

    parsed_model(constants(1000))
    refused_once_parsed(constants(2200), "become 22,000 nodes .2,200 calls")


def test_a_graph_that_calls_pass_on_counts_as_often_as_it_is_used() -> None:
    branch = helper.make_graph(chain("Neg", "", 1000), "branch", [], [])

    def passing(uses: int, *, by_default: bool) -> bytes:
        body = [helper.make_node("If", ["a"], ["b"]) for _ in range(uses)]
        for node in body:
            node.attribute.add(
                name="then_branch", ref_attr_name="w", type=onnx.AttributeProto.GRAPH
            )
        function = function_of(0, body)
        given = {} if by_default else {"w": branch}
        if by_default:
            function.attribute_proto.append(helper.make_attribute("w", branch))
        return calling([helper.make_node("f0", ["x"], ["y"], domain="my", **given)], [function])

    parsed_model(passing(10, by_default=False))
    refused_once_parsed(passing(200, by_default=False), "become 200,200 nodes")
    refused_once_parsed(passing(200, by_default=True), "become 200,200 nodes")
    # A graph that is passed on may have a reference itself, which is then copied as often.
    outer = onnx.ModelProto.FromString(passing(200, by_default=False))
    inner = helper.make_graph([outer.functions[0].node[0]], "inner", [], [])
    between = helper.make_node("f0", ["a"], ["b"], domain="my", w=inner)
    outer.functions.append(function_of(1, [between]))
    outer.graph.node[0].op_type = "f1"
    refused_once_parsed(outer.SerializeToString(), "become 200,400 nodes")


@pytest.mark.parametrize("place", ["body", "call", "name"])
def test_a_constant_or_a_name_counts_in_each_copy_of_its_function(place: str) -> None:
    def copied(times: int) -> bytes:
        value = helper.make_tensor("v", TensorProto.INT8, [2**20], bytes(2**20), raw=True)
        name, given, calls, nodes = "f0", {}, times, [helper.make_node("Constant", [], ["b"])]
        if place == "body":
            nodes[0].attribute.append(helper.make_attribute("value", value))
        elif place == "name":
            name, nodes = "f" * 60_000, nodes * 20
        else:
            given, calls, nodes = {"w": value}, 1, nodes * times
            for node in nodes:
                node.attribute.add(name="value", ref_attr_name="w", type=onnx.AttributeProto.TENSOR)
        function = function_of(0, nodes)
        function.name = name
        call = helper.make_node(name, ["x"], ["y"], domain="my", **given)
        return calling([call] * calls, [function])

    parsed_model(copied(10))
    refused_once_parsed(copied(300), "take more than 256 MiB of memory where each call is replaced")


@pytest.mark.parametrize("disguise", ["overload", "twice", "domain"])
def test_functions_cannot_hide_from_the_count(disguise: str) -> None:
    model = onnx.ModelProto.FromString(doubling_functions(60))
    for function in list(model.functions):
        if disguise == "overload":
            model.functions.add().CopyFrom(function)
            model.functions[-1].overload = "other"
            del model.functions[-1].node[:]
        elif disguise == "twice":
            model.functions.add().CopyFrom(function)
            del model.functions[-1].node[:]
        else:
            function.domain = "ai.onnx"
            for node in function.node:
                node.domain = ""
    if disguise == "domain":
        model.graph.node[0].domain = ""
    with pytest.raises(ModelError, match="become 1,000,000,000,000 nodes"):
        parsed_model(model.SerializeToString())


def test_a_node_of_very_many_values_is_refused_also_inside_a_branch() -> None:
    names = [f"x{number}" for number in range(20_001)]
    wide = helper.make_node("Concat", names, ["y"], axis=0)
    branch = helper.make_graph([wide], "branch", [], [])
    for node in (wide, helper.make_node("If", ["c"], ["y"], then_branch=branch)):
        with pytest.raises(ModelError, match="Concat has 20,001 inputs or outputs"):
            parsed_model(model_of([node], {}, {}).SerializeToString())


def test_more_branches_than_shapes_are_inferred_for_are_refused() -> None:
    """ONNX copies the names of all nodes for each branch."""

    body = helper.make_graph(chain("Neg", "", 1), "body", [], [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    parsed_model(calling([node] * 1000, []))
    functions = [function_of(0, [node] * 10)]
    for many in (calling([node] * 10_000, []), calling(chain("f0", "my", 1000), functions)):
        with pytest.raises(ModelError, match="has 20,000 branches and bodies among 30,000 nodes"):
            parsed_model(many)


def test_a_function_that_calls_itself_is_refused() -> None:
    model = onnx.ModelProto.FromString(doubling_functions(2))
    model.functions[0].node.add(domain="my", op_type="f1", input=["a"], output=["c"])
    with pytest.raises(ModelError, match="calls itself"):
        parsed_model(model.SerializeToString())


def doubling_functions(count: int) -> bytes:
    """A model of functions that each call the one before twice."""
    bodies = [chain(f"f{n - 1}", "my", 2) if n else chain("Neg", "", 1) for n in range(count)]
    return calling(
        chain(f"f{count - 1}", "my", 1), [function_of(*each) for each in enumerate(bodies)]
    )


def chain(operator: str, domain: str, length: int) -> list[onnx.NodeProto]:
    names = ["a", *(f"t{number}" for number in range(1, length)), "b"]
    return [
        helper.make_node(operator, [one], [next_], domain=domain) for one, next_ in pairwise(names)
    ]


def function_of(number: int, nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_function("my", f"f{number}", ["a"], ["b"], nodes, opsets)


def calling(nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto]) -> bytes:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    graph = helper.make_graph(nodes, "g", [], [])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    return bytes(model.SerializeToString())


def test_a_name_is_no_place_for_megabytes() -> None:
    model = conv_model()
    model.graph.node[0].name = "n" * 100_000
    refused(
        model.SerializeToString(), "it has a name of 100,000 bytes; the longest may have 65,536"
    )


def test_a_file_over_two_gibibytes_is_said_to_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_scan, "MAX_MODEL_BYTES", 100)
    content = conv_model().SerializeToString()
    refused(content, "it has 0.0 GiB, and an ONNX file ends at 2: its tensors belong in data files")


def refused(content: bytes, problem: str) -> None:
    with pytest.raises(ModelError) as raised:
        data_files(content)
    assert str(raised.value) == problem


def refused_once_parsed(content: bytes, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        parsed_model(content)


def varint(number: int) -> bytes:
    written = b""
    while number >= 128:
        written += bytes([number % 128 + 128])
        number //= 128
    return written + bytes([number])
