#!/bin/bash
# Everything that waits for a GPU, in twenty minutes, on a machine without a network.
#
#   benchmarks/gpu.sh [FOLDER WITH part-00, part-01, ...]
#
# Such a machine has Python with numpy, scipy, scikit-learn, onnx and onnxruntime, and nvcc. The parts hold the rest
# (apache-tvm, msgspec, nvidia-ml-py, ... and pytest), as one xz archive of a site directory. Without a folder, what is
# installed is used. Results go to $OUT, or to .gpu-results: the log of the tests, and one table for each benchmark.
set -uo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-.gpu-results}"
mkdir -p "$out"
if [ $# -gt 0 ]; then
  mkdir -p /tmp/site
  cat "$1"/part-* | tar -xJ -C /tmp/site || exit 2
  export PYTHONPATH="/tmp/site${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONPATH="$PWD:$PWD/plugin:$PWD/cache:$PWD/action${PYTHONPATH:+:$PYTHONPATH}"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv | tee "$out/machine.csv"
failed=0
step() { # step SECONDS NAME COMMAND...
  local seconds=$1 name=$2
  shift 2
  echo "== $name"
  timeout "$seconds" "$@" 2>&1 | tee "$out/$name.log"
  local code=${PIPESTATUS[0]}
  [ "$code" = 0 ] || { echo "$name: exit $code"; failed=1; }
}
step 60 doctor python3 -m tunegate doctor
step 240 tests python3 -m pytest -q -p no:cacheprovider --confcutdir tests/gpu -m gpu tests/gpu
step 150 tuning python3 -m benchmarks.tuning.gpu_tuning transformer-128 --seconds 90
step 120 gate python3 -m benchmarks.gate.gpu_launches transformer-128 --launches 6
step 300 whole python3 -m benchmarks.gate.gpu_launches transformer --launches 3 --batches 1 16 32
step 300 runtimes python3 -m benchmarks.real_models.runtimes --cuda --models squeezenet resnet50 transformer --minutes 0.5 --launches 2
exit $failed
