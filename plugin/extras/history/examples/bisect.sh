#!/usr/bin/env bash
# Finds the slow one of 32 commits, with a retrained model, a rename, a runtime upgrade and a broken model among them.
# Nothing is tuned; at most six measurements, about two minutes on a quiet machine.
#
#     make environment       # once: makes .venv
#     PATH=$PWD/.venv/bin:$PATH plugin/extras/history/examples/bisect.sh
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME=$place
mkdir "$place/repository" && cd "$place/repository" && git init -q -b main
git config user.name t && git config user.email t@example.com

model() { # seed, layers, file
  python - "$@" <<'PYTHON'
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

seed, layers = int(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(seed)
weights = {f"w{n}": random.standard_normal((32, 32, 3, 3)).astype(np.float32) for n in range(layers)}
names = ["x", *(f"h{n}" for n in range(1, layers)), "y"]
graph = helper.make_graph(
    [
        helper.make_node("Conv", [names[n], f"w{n}"], [names[n + 1]], name=f"layer{n}", pads=[1, 1, 1, 1])
        for n in range(layers)
    ],
    "m",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 28, 28])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 28, 28])],
    [numpy_helper.from_array(values, name) for name, values in weights.items()],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[3])
PYTHON
}

cat >tunegate.yaml <<'YAML'
models:
  - path: "*.onnx"
targets:
  - {name: cpu, runtime: onnxruntime, threads: 1}
YAML
printf '.tunegate/\n' >.gitignore
echo "onnxruntime==1.22.0" >requirements.txt
file=encoder.onnx layers=4
model 0 $layers $file && git add . && git commit -qm "The first model" && git tag v1.0.0
for number in $(seq 1 32); do
  subject="Change $number of the page"
  echo "$number" >page.txt
  case $number in
    5 | 11 | 17 | 29) subject="Retrain"; model "$number" $layers $file ;;
    9) subject="Rename the model"; git mv $file speech.onnx; file=speech.onnx ;;
    14) subject="Upgrade the runtime"; echo "onnxruntime==1.23.0" >requirements.txt ;;
    20) subject="A broken file"; echo "no model" >$file ;;
    21) subject="Repair it"; model 17 $layers $file ;;
    23) subject="One more layer"; layers=6; model 17 $layers $file ;;
  esac
  git add . && git commit -qm "$subject"
done

echo "== 32 commits: which one made it slow?"
tunegate bisect v1.0.0..HEAD
echo "== and where nothing got slower"
tunegate bisect v1.0.0..HEAD~13 --margin-percent 25
