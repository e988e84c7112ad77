"""Values of a graph that decide how much there is to compute (shapes, counts, conditions), and
everything that they are computed from."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import onnx

from tunegate.models.model_inputs import real_inputs
from tunegate.system.onnx_scan import bodies_of, nodes_of

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_Places = slice | tuple[int, ...]
"""Inputs of an operator, by their numbers."""
_EACH = slice(0, None)
_DECIDING_INPUTS: dict[str, _Places] = {
    **{f"Reduce{kind}": slice(1, 2) for kind in _REDUCTIONS},  # the axes
    "AffineGrid": slice(1, 2),
    "Attention": slice(6, 7),  # of ONNX and of ONNX Runtime: how long the cache is
    "AttnLSTM": (4, 12),
    "BeamSearch": _EACH,
    "BlackmanWindow": slice(0, 1),
    "CenterCropPad": slice(1, 2),
    "Col2Im": slice(1, 3),
    "ConstantOfShape": slice(0, 1),
    "ConvTransposeWithDynamicPads": slice(2, 3),
    "CropAndResize": slice(3, 4),
    "DFT": slice(1, 3),
    "DecoderMaskedMultiHeadAttention": slice(7, 8),
    "DecoderMaskedSelfAttention": slice(6, 7),
    "DynamicQuantizeLSTM": slice(4, 5),
    "DynamicSparseAttention": slice(8, 11),
    "Expand": slice(1, 2),
    "GRU": slice(4, 5),
    "GreedySearch": _EACH,
    "GroupQueryAttention": slice(5, 7),
    "HammingWindow": slice(0, 1),
    "HannWindow": slice(0, 1),
    "If": slice(0, 1),
    "LSTM": slice(4, 5),
    "Loop": slice(0, 2),
    "MaxUnpool": slice(2, 3),
    "MelWeightMatrix": slice(0, 5),
    "MultiHeadAttention": slice(8, 9),
    "NonMaxSuppression": slice(2, 5),
    "OneHot": slice(1, 2),
    "PackedAttention": slice(3, 5),
    "PackedMultiHeadAttention": slice(4, 6),
    "Pad": slice(1, 2),
    "PagedAttention": slice(5, 8),
    "RNN": slice(4, 5),
    "Range": slice(0, 3),
    "RemovePadding": slice(1, 2),
    "Reshape": slice(1, 2),
    "Resize": slice(1, 4),
    "RestorePadding": slice(1, 2),
    "STFT": slice(1, 4),
    "Sampling": _EACH,
    "SequenceAt": slice(1, 2),
    "SequenceErase": slice(1, 2),
    "SequenceInsert": slice(2, 3),
    "Slice": slice(1, 5),
    "SparseAttention": slice(5, 9),
    "Split": slice(1, 2),
    "Tile": slice(1, 3),
    "TopK": slice(1, 2),
    "Upsample": slice(1, 2),
    "WhisperBeamSearch": _EACH,
}
_OF_SHAPES_ONLY = {"Shape", "Size"}
"""Operators whose result does not depend on the content of the tensor."""
_CHOOSING: dict[str, _Places] = {
    **_DECIDING_INPUTS,
    # Kernels of GPUs leave out what a mask covers. Only ONNX Runtime's Attention takes lengths.
    "com.microsoft.Attention": (3, 6),
    # Keys of a pull request may all collide in a hash table, so that each look-up reads all.
    **dict.fromkeys(("CategoryMapper", "DictVectorizer", "LabelEncoder", "OneHotEncoder"), _EACH),
    "Compress": slice(1, 2),
    "CropAndResize": slice(1, 4),
    "CumSum": slice(1, 2),
    "DecoderAttention": (5, 11),
    "DecoderMaskedMultiHeadAttention": (3, 7),
    "DecoderMaskedSelfAttention": (3, 6),
    "DeformConv": slice(2, 4),  # what lies outside of an image costs less
    "Dropout": slice(2, 3),  # only training draws numbers
    "GridSample": slice(1, 2),
    "ImageDecoder": slice(0, 1),
    "LongformerAttention": (3, 6),
    "MoE": slice(1, 2),  # only experts that a token is sent to compute
    "MaxRoiPool": slice(1, 2),
    "Mod": slice(0, 2),  # of floats, a step for each bit between them
    "MultiHeadAttention": (4, 8),
    "NGramRepeatBlock": slice(0, 1),
    "NonMaxSuppression": slice(0, 5),
    "NonZero": slice(0, 1),
    "Pow": slice(1, 2),  # an exponent of 2 or 3 costs a few products
    "QAttention": slice(5, 6),
    "QMoE": slice(1, 2),
    "QOrderedAttention": slice(17, 18),
    "RoiAlign": slice(1, 2),  # a larger region has more samples
    "SparseToDenseMatMul": slice(0, 1),  # as many products as there are numbers in it
    "SplitToSequence": slice(1, 2),
    "TfIdfVectorizer": slice(0, 1),
    "TopK": slice(0, 2),  # what is in order already takes the most steps
    "TreeEnsemble": slice(0, 1),  # a path is as long as the numbers make it
    "TreeEnsembleClassifier": slice(0, 1),
    "TreeEnsembleRegressor": slice(0, 1),
    "Unique": slice(0, 1),
    "WordConvEmbedding": slice(0, 1),
}
"""The inputs whose numbers, beside their sizes, decide what is computed or how large results
are."""

_CONTRIB = "com.microsoft"
_SPECIFIED = {"", "ai.onnx.ml", _CONTRIB}
_STEADY = re.compile(
    r"(QLinear|MatMul|Skip|HyperConnection|Nhwc)\w+|LinearAttention(Gate)?"
    r"|Bias(Add|Gelu|Softmax|SplitGelu)|QOrdered(Gelu|LayerNormalization|MatMul)"
    r"|(Dynamic)?(De)?[Qq]uantize(BFP|Linear|MatMul|WithOrder)|CDist|CausalConvWithState"
    r"|ComplexMul(Conj)?|EngramGate|ExpandDims|FusedConv|FusedGemm|FusedMatMul(Activation)?"
    r"|Gated(Add|DeltaNet|RMSNorm|RelativePositionBias)|Gather(BlockQuantized|ND)"
    r"|(Fast|Quick|GemmFast)?Gelu|GemmFloat8|(Gemma|M)?Rotary(Embedding)?|GroupNorm"
    r"|Inverse|Irfft|Rfft|IsAllFinite|MaxpoolWithMask|MulInteger|NGramHashMapping|QGemm"
    r"|Q?EmbedLayerNormalization|BranchwiseRMSNorm|ReduceSumInteger|RelativePositionBias"
    r"|ScaledSiLU|TorchEmbedding|TransposeMatMul|Trilu|UnfoldTensor"
)
"""Operators of ONNX Runtime that compute the same for all numbers. Each that is neither here nor
above may not."""
_TEXT_TO_NUMBERS = {
    *("CategoryMapper", "DictVectorizer", "Equal", "LabelEncoder", "MurmurHash3", "OneHotEncoder"),
    *("OptionalHasElement", "RegexFullMatch", "SequenceLength", "Shape", "Size"),
    "TfIdfVectorizer",
}
_TEXT_TYPE = re.compile(rf"(elem|key)_type: {onnx.TensorProto.STRING}\b")
_TEXT_ATTRIBUTES = {"cats_strings", "classlabels_strings", "string_vocabulary", "values_strings"}
"""Texts that are in the first output."""
_MAY_BE_TEXT = {"cast_to", "to", "value", "value_string", "value_strings", "values_tensor"}

Sources = dict[str, list[tuple[str, ...]]]


def deciding_values(model: onnx.ModelProto) -> set[str]:
    """Returns their names, in every graph and function: a name used in two of them counts for
    both."""
    deciding = [name for node in nodes_of(model) for name in _deciding(node)]
    return _add_all_sources(deciding, _sources_of(model))


def chosen_by_inputs(model: onnx.ModelProto, custom: Collection[str]) -> tuple[str, ...]:
    """Returns the operator of each node that chooses a branch, a number of steps, the size of a
    result or the length of a text by numbers of the model's inputs. `custom` operators, like
    `ai.onnx.contrib:Inverse`, and most of ONNX Runtime's own may all do so."""
    deciding: list[tuple[str, list[str]]] = []
    texts = _texts_of(model)
    for node in nodes_of(model):
        has_text = not texts.isdisjoint((*node.input, *node.output))
        if has_text or _is_unspecified(node) or f"{node.domain}:{node.op_type}" in custom:
            deciding.append((node.op_type, list(node.input)))
        elif node.op_type in _CHOOSING and not _is_mod_of_integers(node):
            deciding.append((node.op_type, list(_deciding(node, _CHOOSING))))
    if not deciding:
        return ()
    inputs = {value.name for value in real_inputs(model.graph)}
    moved = _all_computed_from(inputs, _sources_of(model))
    return tuple(sorted(kind for kind, names in deciding if not moved.isdisjoint(names)))


def _is_unspecified(node: onnx.NodeProto) -> bool:
    """Returns whether an operator of ONNX Runtime's may choose its work, as far as is listed."""
    is_listed = node.op_type in _CHOOSING or _STEADY.fullmatch(node.op_type)
    return node.domain == _CONTRIB and not is_listed


def _is_mod_of_integers(node: onnx.NodeProto) -> bool:
    return node.op_type == "Mod" and not any(each.name == "fmod" for each in node.attribute)


def _texts_of(model: onnx.ModelProto) -> set[str]:
    """Returns the names of texts, and of lists and maps that have some, in every graph and
    function."""
    nodes = list(nodes_of(model))
    graphs = [model.graph, *(body for node in nodes for body in bodies_of(node))]
    values = [value for graph in graphs for value in graph.input]
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    texts = {each.name for each in values if _TEXT_TYPE.search(str(each.type))}
    texts.update(each.name for each in tensors if each.data_type == onnx.TensorProto.STRING)
    texts.update(node.output[0] for node in nodes if _writes_text(node))
    return _all_computed_from(texts, _sources_of(model, _TEXT_TO_NUMBERS)) if texts else texts


def _writes_text(node: onnx.NodeProto) -> bool:
    """Returns whether a node makes texts of what is none. What a function's caller gives may."""
    return any(
        each.name in _TEXT_ATTRIBUTES
        or (each.ref_attr_name and each.name in _MAY_BE_TEXT)
        or (each.name in ("value_string", "value_strings") and node.op_type == "Constant")
        or (each.name == "cast_to" and each.s == b"TO_STRING")
        or (each.name == "to" and each.i == onnx.TensorProto.STRING)
        or each.t.data_type == onnx.TensorProto.STRING
        for each in node.attribute
    )


def _deciding(
    node: onnx.NodeProto, inputs: Mapping[str, _Places] = _DECIDING_INPUTS
) -> Iterator[str]:
    places = inputs.get(f"{node.domain}.{node.op_type}", inputs.get(node.op_type, ()))
    if isinstance(places, slice):
        yield from node.input[places]
    else:
        yield from (name for at, name in enumerate(node.input) if at in places)
    if node.op_type == "Loop":
        yield from (name for body in bodies_of(node) for name in _outputs(body)[:1])


def _sources_of(model: onnx.ModelProto, cut: Collection[str] = _OF_SHAPES_ONLY) -> Sources:
    """Returns what each value is computed from, by operator. Results of `cut` operators count as
    computed from nothing."""
    sources: Sources = {}
    functions = _functions_of(model)
    for node in nodes_of(model):
        overloads = functions.get(_called(node.domain, node.op_type), ())
        if not overloads and node.op_type in cut and node.domain in _SPECIFIED:
            continue
        _add_sources(sources, node, overloads)
    return sources


def _functions_of(model: onnx.ModelProto) -> dict[tuple[str, str], list[onnx.FunctionProto]]:
    """Returns the functions by domain and name, each with all its overloads."""
    functions: dict[tuple[str, str], list[onnx.FunctionProto]] = {}
    for function in model.functions:
        functions.setdefault(_called(function.domain, function.name), []).append(function)
    return functions


def _called(domain: str, name: str) -> tuple[str, str]:
    return "" if domain == "ai.onnx" else domain, name


def _add_all_sources(names: Iterable[str], sources: Sources) -> set[str]:
    """Returns the names and everything that they are computed from."""
    all_sources: set[str] = set()
    read: set[int] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if not name or name in all_sources:
            continue
        all_sources.add(name)
        for inputs in sources.get(name, ()):
            if id(inputs) not in read:  # all outputs of a node have one list
                read.add(id(inputs))
                waiting += inputs
    return all_sources


def _all_computed_from(names: Collection[str], sources: Sources) -> set[str]:
    """Returns the names and everything that is computed from them."""
    made: dict[int, list[str]] = {}
    readers: dict[str, list[int]] = {}
    for name, tuples in sources.items():
        for inputs in tuples:
            if id(inputs) not in made:  # all outputs of a node have one list
                for read in set(inputs):
                    readers.setdefault(read, []).append(id(inputs))
            made.setdefault(id(inputs), []).append(name)
    computed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name and name not in computed:
            computed.add(name)
            waiting += [each for inputs in readers.pop(name, ()) for each in made.pop(inputs, ())]
    return computed


def _add_sources(
    sources: Sources, node: onnx.NodeProto, overloads: Sequence[onnx.FunctionProto]
) -> None:
    bodies = bodies_of(node)
    made_inside = [name for body in bodies for name in _outputs(body)]
    of_call = tuple(node.input)
    for function in overloads:
        made_inside += function.output
        for formal in function.input:
            sources.setdefault(formal, []).append(of_call)
    shared = (*node.input, *made_inside)
    for body in bodies:  # a loop passes its results to the next iteration
        for value in body.input:
            sources.setdefault(value.name, []).append(shared)
    for name in node.output:
        sources.setdefault(name, []).append(shared)


def _outputs(body: onnx.GraphProto) -> list[str]:
    return [value.name for value in body.output]
