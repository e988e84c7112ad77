"""The ways to compute each kernel of a model in blocks of one size: with recorded schedules, with
default ones, and with one thread per element, which always fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tvm
from tvm import relax
from tvm.relax.backend.cuda import pipeline
from tvm.s_tir import dlight

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate_cache.format.how_built import mark_of
from tunegate_whole_model.native.straight_code import SYMBOL, StraightCode
from tunegate_whole_model.nests.nests import Kernel, nests_of
from tunegate_whole_model.nests.taken_apart import nest_symbol
from tunegate_whole_model.persistent.device_code import device_code, fits
from tunegate_whole_model.persistent.stage_program import CodedKernel, WholeModel
from tunegate_whole_model.stages.contexts import CONTEXTS, Context


class Scheduled(NamedTuple):
    """A model with its recorded schedules, and without any; equal if there are none."""

    recorded: Any
    plain: Any


Names = tuple[Sequence[str], Sequence[str]]
"""The names of the inputs and of the outputs."""


class Decided(NamedTuple):
    """The choices of an earlier build, as marks of `HowBuilt`: base and head are built alike, while
    times alone could choose differently for each. `identities` are the digests of kernels by
    symbol, whose numbers differ between the sides."""

    marks: frozenset[int] = frozenset()
    identities: Mapping[str, str] = {}

    def mark_of_way(self, symbol: str, source: str) -> int:
        identity = self.identities.get(symbol, symbol)
        return mark_of(digest_of_document({"kernel": identity, "way": source}))

    def of(self, model: WholeModel) -> WholeModel:
        """Returns the model, in which kernels with a decided way have no other."""
        decided = {
            symbol: {
                source: way
                for source, way in ways.items()
                if self.mark_of_way(symbol, source) in self.marks
            }
            for symbol, ways in model.ways.items()
        }
        return model._replace(
            ways={symbol: decided[symbol] or ways for symbol, ways in model.ways.items()}
        )

    def context(self) -> Context | None:
        """Returns the context of a build of the same graph."""
        return next((each for each in CONTEXTS if mark_of_context(each) in self.marks), None)


NOTHING_DECIDED = Decided()


def mark_of_context(context: Context) -> int:
    return mark_of(digest_of_document({"blocks": context.blocks_each, "threads": context.threads}))


def whole_model(model: Scheduled, names: Names, target: Any, threads: int) -> WholeModel:
    """Returns the model. Raises UnsupportedModelError for what is no straight-line code of kernels,
    and NotOfferedError if a kernel has no way that fits."""
    bounded = tvm.target.Target({**dict(target.export()), "max_threads_per_block": threads})
    lowered = {
        source: _lower(module, bounded) for source, module in _sources(model, bounded).items()
    }
    first = next(iter(lowered.values()))
    kernels = {variable for variable, f in first.functions.items() if _is_kernel(f)}
    program = StraightCode(first["main"], names, 1, kernels).program()
    symbols = list(dict.fromkeys(call.symbol for call in program.calls))
    head, ways = "", dict[str, dict[str, CodedKernel]]({symbol: {} for symbol in symbols})
    for source, module in lowered.items():
        head, found = _write_kernels(module, source, bounded)
        for symbol in symbols:
            way = found.get(symbol)
            if way is not None and all(fits(code, threads) for code in way.codes):
                ways[symbol][source] = way
    lacking = next((symbol for symbol, found in ways.items() if not found), None)
    if lacking is not None:
        raise NotOfferedError(f"{lacking} does not fit into blocks of {threads} threads")
    return WholeModel(program, head, ways)


def _sources(model: Scheduled, target: Any) -> dict[str, Any]:
    with target:
        plain = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(model.plain.clone())
    recorded = {"recorded": with_default_schedule(model.recorded, target)}
    if model.recorded is not model.plain:
        recorded["default"] = with_default_schedule(model.plain, target)
    return {**recorded, "plain": plain}


def _lower(module: Any, target: Any) -> Any:
    """Returns the lowered module without TVM's own fusion: the importer fused before, and kernels
    must have the same names whatever their schedules."""
    with target, tvm.transform.PassContext(opt_level=3):
        legal = tvm.transform.Sequential(
            [*pipeline.library_dispatch_passes(target), relax.transform.LegalizeOps()]
        )(module)
        rest = [
            *pipeline.dataflow_lower_passes(target),
            relax.transform.AttachGlobalSymbol(),
        ]
        return tvm.transform.Sequential(rest)(with_default_schedule(legal, target))


def _write_kernels(module: Any, source: str, target: Any) -> tuple[str, dict[str, CodedKernel]]:
    """Returns the kernels of a module by their calls' symbols, without those that are no nests."""
    apart: dict[str, Kernel] = {}
    for variable, function in module.functions.items():
        if _is_kernel(function):
            try:
                apart[str(variable.name_hint)] = nests_of(function)
            except UnsupportedModelError:
                continue
    named = {
        f"{source}_{nest_symbol(name, n)}": nest.function
        for name, kernel in apart.items()
        for n, nest in enumerate(kernel.nests)
    }
    code = device_code(named, target)
    return code.head, {
        SYMBOL.format(name): CodedKernel(
            kernel,
            tuple(
                code.kernels[f"{source}_{nest_symbol(name, n)}"] for n in range(len(kernel.nests))
            ),
        )
        for name, kernel in apart.items()
    }


def _is_kernel(function: Any) -> bool:
    return isinstance(function, tvm.tirx.PrimFunc)
