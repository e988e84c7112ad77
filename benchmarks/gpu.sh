#!/bin/bash
# What needs a GPU, on a machine without a network.
#
#   STEPS="doctor tests whole" benchmarks/gpu.sh [FOLDER WITH part-00, part-01, ...]
#
# Such a machine has Python with numpy, scipy, scikit-learn, onnx and onnxruntime, and nvcc. The parts hold the rest
# (apache-tvm, msgspec, zstandard, cryptography, cupti-python with pyelftools, ...), as one xz archive of a site
# directory. Without a folder, what is installed is used. Without STEPS all are done, which
# takes about 20 minutes of 16 cores. Results go to $OUT, or to .gpu-results: a log for each step.
set -uo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-.gpu-results}"
mkdir -p "$out"
export PYTHONUNBUFFERED=1 TVM_BIND_THREADS=0
unset PYTHONDONTWRITEBYTECODE
if [ $# -gt 0 ]; then
  mkdir -p /tmp/site
  cat "$1"/part-* | tar -xJ -C /tmp/site || exit 2
  # Else each process compiles all that it imports.
  python3 -m compileall -q -j 0 /tmp/site plugin cache >"$out/bytecode.log"
  export PYTHONPATH="/tmp/site${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONPATH="$PWD:$PWD/plugin:$PWD/cache:$PWD/action${PYTHONPATH:+:$PYTHONPATH}"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv | tee "$out/machine.csv"
failed=0
step() { # step SECONDS NAME COMMAND...
  local seconds=$1 name=$2
  shift 2
  case " ${STEPS:-$name} " in *" $name "*) ;; *) return ;; esac
  echo "== $name"
  timeout --signal INT --kill-after 10 "$seconds" "$@" 2>&1 | tee "$out/$name.log"
  local code=${PIPESTATUS[0]}
  [ "$code" = 0 ] || { echo "$name: exit $code"; failed=1; }
}
step 60 doctor python3 -m tunegate doctor -v
step 300 tests python3 -m pytest -v --durations 20 -p no:cacheprovider --confcutdir tests/gpu -m gpu tests/gpu
step 150 tuning python3 -m benchmarks.tuning.gpu_tuning transformer-128 --seconds 90
step 150 gate python3 -m benchmarks.gate.gpu_launches transformer-128 --launches 3
step 150 whole python3 -m benchmarks.gate.gpu_launches transformer --launches 2 --batches 1
step 300 batches python3 -m benchmarks.gate.gpu_launches transformer --launches 2 --batches 16 32
step 300 runtimes python3 -m benchmarks.real_models.runtimes --cuda --models squeezenet resnet50 transformer --minutes 0.5 --launches 2
exit $failed
