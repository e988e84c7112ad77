"""The nodes of an ONNX model that a kernel computes.

Legalization and fusion keep the names of variables: each is named after the node whose value it is,
and read where the groups of fusion are known and their insides still are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

_ATTRIBUTE = "tunegate.nodes"
_OF_NODE = re.compile(r"node(\d+)")


def with_node_names(module: Any, values: Mapping[Any, int]) -> Any:
    """Returns the module with variables named like their nodes; `values` has the place of the node
    of each expression that an importer made of one."""
    main = module["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    places = {
        binding.var: place
        for binding in bindings
        if (place := values.get(binding.value, values.get(binding.var))) is not None
    }
    renamed = tvm.IRModule(module.functions, attrs=module.attrs)
    renamed.update_func(module.get_global_var("main"), _Renaming(places).visit_expr(main))
    return renamed


def nodes_of_calls(legalized: Any, grouped: Any) -> list[list[int]]:
    """The places of the nodes of each call of a kernel, in their order, as long as a kernel is a
    group of operators with variables of its own. `legalized` is the module before it was grouped:
    what a group gives is renamed, and is found again by what reads its other values."""
    readers = {
        (binding.value.args[0].name_hint, source): binding.var.name
        for binding in _calls(legalized["main"])
        for source in _sources(binding)
    }
    return [
        [int(found[1]) for name in names if (found := _OF_NODE.fullmatch(name))]
        for names in (_inside(grouped, binding, readers) for binding in _calls(grouped["main"]))
    ]


def with_kernel_nodes(module: Any, nodes: Sequence[Sequence[str]]) -> Any:
    """The module with a function for each kernel, which has the `nodes` of each call from now on;
    nothing where it has other calls."""
    kernels = [binding.value.args[0].name_hint for binding in _calls(module["main"])]
    found: dict[str, Sequence[str]] = {}
    if len(kernels) == len(nodes):
        for kernel, names in zip(kernels, nodes, strict=True):
            found.setdefault(kernel, names)
    return module.with_attr(_ATTRIBUTE, json.dumps(found))


def kernel_nodes(module: Any) -> dict[str, Sequence[str]]:
    """The nodes of each kernel by its name, in the order in which it computes them; a kernel of
    which nobody knows any is missing. Those of a kernel that is called twice are the first's."""
    if module.attrs is None or _ATTRIBUTE not in module.attrs:
        return {}
    found: dict[str, list[str]] = json.loads(str(module.attrs[_ATTRIBUTE]))
    return {kernel: names for kernel, names in found.items() if names}


def _inside(module: Any, binding: Any, readers: Mapping[tuple[str, str], str]) -> Sequence[str]:
    """The variables that a call of a kernel computes, its own last."""
    callee = binding.value.op
    if not isinstance(callee, tvm.ir.GlobalVar):
        return [binding.var.name]
    *others, last = _calls(module[callee])
    kernel = last.value.args[0].name_hint
    given = next((readers[kernel, x] for x in _sources(last) if (kernel, x) in readers), "")
    return [*(each.var.name for each in others), given]


def _sources(binding: Any) -> Iterator[str]:
    """The variables of nodes that a call reads."""
    read = binding.value.args[1]
    for each in read.fields if isinstance(read, relax.Tuple) else (read,):
        if isinstance(each, relax.Var) and _OF_NODE.fullmatch(each.name):
            yield each.name


def _calls(main: Any) -> Iterator[Any]:
    """The bindings that call a kernel."""
    call_tir = tvm.ir.Op.get("relax.call_tir")
    for binding in _bindings(main):
        value = binding.value
        if isinstance(value, relax.Call):
            is_group = isinstance(value.op, tvm.ir.GlobalVar)
            if is_group or value.op.same_as(call_tir):
                yield binding


def _bindings(function: Any) -> Iterator[Any]:
    for block in function.body.blocks:
        yield from block.bindings


@relax.expr_functor.mutator
class _Renaming(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, places: Mapping[Any, int]) -> None:
        super().__init__()
        self._places = places

    def visit_var_def_(self, var: Any) -> Any:
        return self._renamed(var, relax.Var)

    def visit_dataflow_var_def_(self, var: Any) -> Any:
        return self._renamed(var, relax.DataflowVar)

    def _renamed(self, var: Any, kind: Any) -> Any:
        if var not in self._places:
            return var
        new = kind(f"node{self._places[var]}", var.ty)
        self.set_var_remap(var, new)
        return new
