"""The child that `init` asks whether ONNX Runtime runs a model at certain sizes. Models are others'
work: one that hangs or takes all memory breaks only this process."""

from pathlib import Path

from tunegate.artifacts.inputs import NOTHING_KNOWN, Columns, Normal, OneOf
from tunegate.errors import ModelError
from tunegate.models.inputs.drawn_inputs import RefusedInputsError, draw_inputs, is_tried
from tunegate.models.inputs.named_values import setting_rule
from tunegate.models.inputs.trial import Trial
from tunegate.models.preparation import prepare
from tunegate.models.prepared import NOT_LOADED, PreparedModel
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.trial_messages import NotLoaded, Outcome, TrialReply, TriedSizes, TrySizes
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.system.processes.memory_limit import lacked_memory, memory_problem

Request = TrySizes
_trials: dict[str, Trial] = {}


def handle_request(request: TrySizes) -> TrialReply:
    """Serves one request. A model is loaded once for all of its sizes."""
    try:
        prepared = prepare(
            Path(request.file), shapes=request.shapes, into=Path(request.scratch), path=request.path
        )
        trial = _trial(request, prepared)
    except ModelError as error:
        return NotLoaded(str(error).removeprefix(f"{request.path}: ").removesuffix("."))
    except Exception as error:  # noqa: BLE001 -- its errors have no common base class
        return NotLoaded(f"{NOT_LOADED} ({error_line(error)})")
    try:
        drawing = draw_inputs(prepared, NOTHING_KNOWN, request.path, trial)
    except RefusedInputsError as error:
        return TriedSizes(outcome=Outcome(problem=error.problem))
    except ModelError as error:
        return TriedSizes(outcome=Outcome(problem=str(error)))
    except Exception as error:
        if not lacked_memory(error):
            raise
        return TriedSizes(outcome=Outcome(problem=memory_problem(error)))
    rules = {
        tensor.name: tensor.rule
        for tensor in drawing.tensors
        if tensor.rule and _is_written(tensor)
    }
    inputs = tuple(tensor.as_reported() for tensor in drawing.tensors)
    return TriedSizes(outcome=drawing.outcome or Outcome(), inputs=inputs, rules=rules)


def _trial(request: TrySizes, prepared: PreparedModel) -> Trial:
    if request.file not in _trials:
        _trials.clear()
        _trials[request.file] = Trial(prepared.original, request.seconds)
    _trials[request.file].allow(request.seconds)
    return _trials[request.file]


def _is_written(tensor: ArtifactTensor) -> bool:
    """Returns whether a configuration can state the rule, and the graph does not imply it."""
    rule = tensor.rule
    if rule is None or isinstance(rule.values, Columns | Normal | OneOf):
        return False
    return is_tried(rule) or rule == setting_rule(tensor)
