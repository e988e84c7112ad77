"""The search space of one workload: the templates of its variants, and schedules as decisions on
them.

The space is regenerated here from our own module. A record names a template by its hash and gives
integers for the template's sampling instructions; nothing else of a record is ever applied.
"""

import hashlib
import json
import math
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import tvm
from tvm import sym
from tvm.ir.expr import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import IntImm
from tvm_ffi import structural_walk

from tunegate.artifacts.tasks import Instruction
from tunegate.compiler.schedules.algorithm_variants import DIRECT, AlgorithmVariant, variants_of
from tunegate.compiler.schedules.grouped_convolutions import keep_vectors
from tunegate.compiler.search.workload import Workload
from tunegate.compiler.shared_memory import shared_bytes, use_dynamic_arrays, with_more_memory
from tunegate.compiler.targets import multiprocessors, vector_registers
from tunegate.tune.gpu_analysis import Card, GpuKernel, Operand, card_of
from tunegate.tune.loop_nest import nest_of
from tunegate.tune.prior import Sketch
from tunegate.tune.protocol import Schedule
from tunegate.tune.refit import adapt
from tunegate_cache.format.decisions import SamplingInstruction, SamplingKind, check_decisions
from tunegate_cache.format.records import Decision

_LOOPS = 12
"""Compute locations are tried up to this loop; TVM takes the nearest possible one."""
_KINDS: dict[str, SamplingKind] = {
    "SamplePerfectTile": "perfect-tile",
    "SamplePartitionedTile": "partitioned-tile",
    "SampleCategorical": "categorical",
    "SampleComputeLocation": "compute-location",
}


class Template(msgspec.Struct, frozen=True):
    """One sketch: the variant it belongs to, its instructions, which of them sample what, and its
    text without names."""

    variant: AlgorithmVariant
    instructions: Any
    sampling: tuple[SamplingInstruction, ...]
    signature: str


class DesignSpace:
    """The templates of a workload on a target, by template hash. Nothing is searched here; `seed`
    fixes what is random in making a template."""

    def __init__(self, workload: Workload, target: Any, seed: int = 1) -> None:
        self._registers = vector_registers(target)
        is_gpu = str(target.kind.name) == "cuda"
        arch = str(target.attrs.get("arch", ""))
        self._card = card_of(arch, multiprocessors(arch)) if is_gpu else None
        self._shared_bytes = shared_bytes(with_more_memory(target) or target)
        self.templates: dict[str, Template] = {}
        self.pure_kinds: set[str] = set()
        self._examples: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self._postprocessors: dict[str, Any] = {}
        self._sampling: dict[str, tuple[SamplingInstruction, ...]] = {}
        self._verifiers: dict[str, Any] = {}
        for each in variants_of(workload.module, str(target.kind.name)):
            self._add(each, target, seed)

    def _add(self, variant: AlgorithmVariant, target: Any, seed: int) -> None:
        roomy = with_more_memory(target)
        context = _context(variant.module, roomy or target, seed)
        self._postprocessors[variant.name] = context.space_generator.postprocs
        if roomy is not None:
            usual = _context(variant.module, target, seed).space_generator.postprocs
            self._verifiers[variant.name] = next(
                p for p in usual if isinstance(p, ms.postproc.VerifyGPUCode)
            )
        for schedule in context.generate_design_space():
            body, _ = _split_trace(schedule.trace)
            if body in self._digests:
                continue  # a trace of one could not be told from a trace of the other
            digest = _digest(variant.name, body)
            self._digests[body] = digest
            self._examples[digest] = schedule
            self.templates[digest] = _template(variant, schedule.trace)
            self.pure_kinds.update(
                str(instruction.kind.name)
                for instruction in schedule.trace.insts
                if instruction.kind.is_pure
            )

    def describe(self, trace: Any) -> Schedule | None:
        """Returns a trace as (template, decisions), None if its template is not in this space."""
        body, decisions = _split_trace(trace)
        return Schedule(self._digests[body], decisions) if body in self._digests else None

    def replay(self, schedule: Schedule) -> Any | None:
        """Returns the scheduled `tvm.s_tir.Schedule`, None if the decisions do not fit this space.

        Factors that do not divide an extent are repaired by TVM's own rule.
        """
        template = self.templates.get(schedule.template)
        if template is None or check_decisions(schedule.decisions, template.sampling) is not None:
            return None
        return self._apply(template, schedule.decisions)

    def reproduces(self, schedule: Schedule) -> bool:
        """Returns whether the decisions fit here unrepaired."""
        replayed = self.replay(schedule)
        return replayed is not None and self.describe(replayed.trace) == schedule

    def refit(self, schedule: Schedule) -> Schedule | None:
        """Returns the decisions adapted to this workload's extents by nearest divisors, None if
        they do not belong to this space."""
        template = self.templates.get(schedule.template)
        if template is None or check_decisions(schedule.decisions, template.sampling) is not None:
            return None
        moved = adapt(schedule.decisions, self.sampling()[schedule.template])
        return None if moved is None else Schedule(schedule.template, moved)

    def sampling(self) -> dict[str, tuple[SamplingInstruction, ...]]:
        """Returns the decisions of each template with the extent of every tile; a compute location
        has the highest one worth trying."""
        if not self._sampling:
            for digest, schedule in self._examples.items():
                values = dict(_split_trace(schedule.trace)[1])
                self._sampling[digest] = tuple(
                    _add_extent(s, values[s.index]) for s in self.templates[digest].sampling
                )
        return self._sampling

    def sketches(self) -> dict[str, Sketch]:
        """Returns the sketch of each template: what it shares with those of other tasks."""
        return {
            digest: Sketch(
                each.variant.name,
                nest_of(each.signature),
                each.variant.lanes,
                self._registers,
                None if self._card is None else _kernel(each, self._card, self._shared_bytes),
            )
            for digest, each in self.templates.items()
        }

    def sample(self, count: int, rng: random.Random) -> list[Any]:
        """Returns at most `count` random schedules that pass the postprocessors."""
        schedules = []
        for _ in range(2 * count):
            template = rng.choice(list(self.templates.values()))
            schedule = self._apply(template, (), seed=rng.randrange(1, 2**31 - 1))
            if schedule is not None:
                schedules.append(schedule)
            if len(schedules) == count:
                break
        return schedules

    def _apply(
        self, template: Template, decisions: Sequence[Decision], seed: int = 1
    ) -> Any | None:
        kinds = {s.index: s.kind for s in template.sampling}
        choices = {
            template.instructions[index]: _value(kinds[index], values)
            for index, values in decisions
        }
        schedule = tvm.s_tir.Schedule(template.variant.module, seed=seed)
        try:
            trace = tvm.s_tir.schedule.Trace(template.instructions, choices)
            trace.apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            if template.variant.lanes > 1:
                keep_vectors(schedule)
            processors = self._postprocessors[template.variant.name]
            fits = all(bool(p.apply(schedule)) for p in processors)
            verifier = self._verifiers.get(template.variant.name)
            if fits and verifier is not None and not verifier.apply(schedule):
                use_dynamic_arrays(schedule)
        except Exception:
            return None  # a schedule that does not apply here is a miss, whatever TVM says of it
        return schedule if fits else None


def _context(module: Any, target: Any, seed: int) -> Any:
    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        num_threads=1,
        rand_state=seed,
    )


def _split_trace(trace: Any) -> tuple[str, tuple[Decision, ...]]:
    """Returns the instructions as text, and the decisions."""
    # Simplified, because evolution drops instructions with unused results.
    instructions, decisions = trace.simplified(remove_postproc=True).as_json()
    body = json.dumps(_to_python(instructions), separators=(",", ":"))
    return body, tuple((int(index), _integers(value)) for index, value in decisions)


def _digest(form_name: str, body: str) -> str:
    prefix = b"ms-th1" if form_name == DIRECT else b"ms-th1 " + form_name.encode() + b" "
    return hashlib.sha256(prefix + body.encode()).hexdigest()


def _template(of: AlgorithmVariant, trace: Any) -> Template:
    short_trace = trace.simplified(remove_postproc=True)
    instructions = _to_python(short_trace.as_json()[0])
    sampling = tuple(
        _sampling(index, name, attributes)
        for index, (name, _, attributes, _) in enumerate(instructions)
        if name in _KINDS
    )
    return Template(
        of, list(short_trace.insts), sampling, trace_signature(instructions, pure=()).text
    )


def _sampling(index: int, name: str, attributes: list[Any]) -> SamplingInstruction:
    kind = _KINDS[name]
    tile = kind in {"perfect-tile", "partitioned-tile"}
    return SamplingInstruction(
        index=index,
        kind=kind,
        n=int(attributes[0]) if tile else 1,
        max_innermost=int(attributes[1]) if kind == "perfect-tile" else 0,
        extent=None,
        candidates=len(attributes[0]) if kind == "categorical" else 0,
    )


def _add_extent(sampling: SamplingInstruction, values: tuple[int, ...]) -> SamplingInstruction:
    match sampling.kind:
        case "perfect-tile" | "partitioned-tile":
            return msgspec.structs.replace(sampling, extent=math.prod(values))
        case "compute-location":
            return msgspec.structs.replace(sampling, extent=_LOOPS)
        case "categorical":
            return sampling


def _to_python(value: Any) -> Any:
    """Converts TVM's containers and numbers to Python's, so that the JSON text is always the
    same."""
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "value"):
        return _to_python(value.value)  # an IntImm or FloatImm
    if hasattr(value, "items"):
        return {str(k): _to_python(v) for k, v in value.items()}
    return [_to_python(v) for v in value]


def _integers(value: Any) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return (int(value),)
    return tuple(int(v) for v in value)


def _value(kind: str, values: tuple[int, ...]) -> Any:
    return list(values) if kind in {"perfect-tile", "partitioned-tile"} else values[0]


# A trace's instructions without names, so that traces of other people's modules can be compared
# with our own. Plain data: nothing here is applied to anything.

_END_OF_SKETCH = "EnterPostproc"
_NAMES_A_BLOCK = "GetSBlock"
_PARALLELISM = ["meta_schedule.parallel"]
"""Instructions that depend on the number of cores; our own template's count."""


class TraceSignature(NamedTuple):
    """`text` is equal for equal sketches; `kept` are the indices of its instructions in the
    trace."""

    text: str
    kept: tuple[int, ...]

    def renumber(self, decisions: Collection[Decision]) -> tuple[Decision, ...]:
        """Renumbers decisions of the trace as decisions of the signature, without those of dropped
        instructions."""
        places = {old: new for new, old in enumerate(self.kept)}
        return tuple(sorted((places[i], values) for i, values in decisions if i in places))


def trace_signature(instructions: Sequence[Instruction], pure: Collection[str]) -> TraceSignature:
    """Returns the sketch part of a trace, its blocks numbered by first use. Instructions without
    effect are left out: those of `pure` kinds with unused results, as TVM's `Trace.simplified`
    drops them."""
    sketch = list(_sketch(instructions))
    places = _effective(sketch, pure)
    variables: dict[str, str] = {}
    blocks: dict[str, int] = {}
    lines = []
    for place in places:
        kind, inputs, attributes, outputs = sketch[place]
        for name in outputs:
            variables[name] = f"@{len(variables)}"
        if kind == _NAMES_A_BLOCK:
            attributes = [blocks.setdefault(json.dumps(attributes), len(blocks))]
        if attributes == _PARALLELISM:
            inputs = inputs[:1]
        lines.append([kind, _rename(inputs, variables), _rename(attributes, {}), len(outputs)])
    return TraceSignature(json.dumps(lines, separators=(",", ":")), tuple(places))


def _sketch(instructions: Sequence[Instruction]) -> Iterator[Instruction]:
    for instruction in instructions:
        if instruction[0] == _END_OF_SKETCH:
            return
        yield instruction


def _effective(sketch: Sequence[Instruction], pure: Collection[str]) -> list[int]:
    inputs_read: set[str] = set()
    places = []
    for place in range(len(sketch) - 1, -1, -1):
        kind, inputs, _, outputs = sketch[place]
        if kind in pure and inputs_read.isdisjoint(outputs):
            continue
        inputs_read.update(_names(inputs))
        places.append(place)
    return places[::-1]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _names(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _names(part)


def _rename(value: Any, variables: dict[str, str]) -> Any:
    if isinstance(value, str):
        return variables.get(value, value)
    if isinstance(value, bool):
        return int(value)  # TVM writes it as a number
    if isinstance(value, list):
        return [_rename(part, variables) for part in value]
    if isinstance(value, dict):
        return {name: _rename(part, variables) for name, part in value.items()}
    return value


# What the tiled sum of a sketch reads, as the analysis of a GPU needs it.

_TILED = "meta_schedule.tiling_structure"


def _kernel(template: Template, card: Card, shared: int) -> GpuKernel | None:
    """Returns the operands of the block that the sketch tiles, None if there is none, or if an
    index is not a sum of the block's loops."""
    name = _tiled_block(template.instructions)
    realizations: list[Any] = []
    structural_walk(template.variant.module["main"].body, [(SBlockRealize, realizations.append)])
    tiled_blocks = [each for each in realizations if each.block.name_hint == name]
    if len(tiled_blocks) != 1:
        return None
    block = tiled_blocks[0].block
    loads: list[Any] = []
    structural_walk(block.body, [(TensorLoad, loads.append)])
    operands = []
    for read in block.reads:
        own = [load for load in loads if load.source.same_as(read.source)]
        operand = _operand(own[0], block) if len(own) == 1 else None
        if operand is None:
            return None
        operands.append(operand)
    return GpuKernel(tuple(operands), card, shared)


def _tiled_block(instructions: Sequence[Any]) -> str:
    names = {}
    for instruction in instructions:
        kind = str(instruction.kind.name)
        if kind == _NAMES_A_BLOCK:
            names[instruction.outputs[0]] = str(instruction.attrs[0])
        if kind == "Annotate" and str(instruction.attrs[0]) == _TILED:
            return names.get(instruction.inputs[0], "")
    return ""


def _operand(load: Any, block: Any) -> Operand | None:
    variables = [variable.var for variable in block.iter_vars]
    dimensions = []
    for index in load.indices:
        # The multiples of each variable, then the rest; nothing where the index is not linear.
        multiples = list(sym.detect_linear_equation(index, variables))
        if not multiples or not all(isinstance(multiple, IntImm) for multiple in multiples[:-1]):
            return None
        strides = [abs(int(multiple)) for multiple in multiples[:-1]]
        dimensions.append(tuple((axis, s) for axis, s in enumerate(strides) if s))
    return Operand(tvm.runtime.DataType(str(load.source.dtype)).itemsize, tuple(dimensions))
