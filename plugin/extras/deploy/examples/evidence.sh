#!/usr/bin/env bash
# Gates a retrained model, signs the verdict, and checks it where the model is deployed: once as it is, then in thirteen
# ways in which it must be refused, each with its one line. At last the deploy gate takes it, and measures where its own
# rules are stricter. No network; about a minute on a quiet machine.
#
#     make environment       # once: makes .venv
#     PATH=$PWD/.venv/bin:$PATH plugin/extras/deploy/examples/evidence.sh
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME=$place
mkdir "$place/repository" && cd "$place/repository" && git init -q -b main
git config user.name t && git config user.email t@example.com

model() { # seed, file
  python - "$1" "$2" <<'PYTHON'
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = np.random.default_rng(int(sys.argv[1])).standard_normal((64, 32, 3, 3)).astype(np.float32)
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"], name="encoder", pads=[1, 1, 1, 1])],
    "m",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 28, 28])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 28, 28])],
    [numpy_helper.from_array(weight, "w")],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[2])
PYTHON
}

cat >tunegate.yaml <<'YAML'
models:
  - path: "*.onnx"
targets:
  - {name: cpu, runtime: onnxruntime, threads: 1}
gate: {margin-percent: 25, tail-margin-percent: 1000, rare-launches: 0, seconds: 30}
YAML
printf '.tunegate/\n' >.gitignore
model 1 m.onnx && cp m.onnx "$place/now.onnx" && git add . && git commit -qm "The model in production"
model 2 m.onnx && cp m.onnx "$place/new.onnx" && git commit -qam "Retrained"
model 3 "$place/another.onnx"

echo "== the gate, in CI"
tunegate run --base HEAD~1 2>"$place/log" || tunegate run --base HEAD~1 2>"$place/log" || { cat "$place/log"; exit 1; }
tail -n 1 "$place/log"
openssl genpkey -algorithm ed25519 -out "$place/key.pem"
openssl genpkey -algorithm ed25519 -out "$place/other.pem"
attest() { TUNEGATE_EVIDENCE_KEY=$(cat "$1") tunegate attest --cyclonedx 2>&1 | sed 's/.*signed by //'; }
foreign=$(attest "$place/other.pem") && mv .tunegate/evidence.json "$place/foreign.json"
key=$(attest "$place/key.pem") && cp .tunegate/evidence.json "$place"
echo "signed by $key, with the interval in .tunegate/evidence.cdx.json"

cd "$place"
policy() { printf 'keys: ["%s"]\n' "$key"; printf '%s\n' "$@"; }
policy 'max-age-days: 14' 'gate: {margin-percent: 25}' 'require-production: true' >policy.yaml
verify() { tunegate verify "$@"; }
echo "== the check, where it is deployed"
time verify evidence.json --policy policy.yaml --model new.onnx --production now.onnx

refused() { # what, then the line of verify
  echo "-- $1"
  local code=0
  verify "${@:2}" 2>&1 || code=$?
  [ "$code" = 2 ] || { echo "exit code $code: it should be refused"; exit 1; }
}
pair=(--model new.onnx --production now.onnx)
python - <<'PYTHON'
import base64
import json

envelope = json.load(open("evidence.json"))
payload = base64.b64decode(envelope["payload"]).replace(b'"margin-percent":25.0', b'"margin-percent":1.00')
json.dump(envelope | {"payload": base64.b64encode(payload).decode()}, open("tampered.json", "w"))
json.dump(envelope | {"payloadType": "application/json"}, open("retyped.json", "w"))
PYTHON
refused "altered content" tampered.json --policy policy.yaml "${pair[@]}"
refused "another type of payload" retyped.json --policy policy.yaml "${pair[@]}"
refused "signed by somebody else" foreign.json --policy policy.yaml "${pair[@]}"
refused "another model" evidence.json --policy policy.yaml --model another.onnx --production now.onnx
refused "an older pass, after production has changed" evidence.json --policy policy.yaml --model new.onnx --production another.onnx
policy 'max-age-days: 0.000001' >stale.yaml
refused "too old" evidence.json --policy stale.yaml "${pair[@]}"
policy "policy-digests: ['$(printf '0%.0s' {1..64})']" >rules.yaml
refused "other rules" evidence.json --policy rules.yaml "${pair[@]}"
policy 'gate: {margin-percent: 3}' >margin.yaml
refused "a wider margin" evidence.json --policy margin.yaml "${pair[@]}"
policy 'gate: {energy-margin-percent: 5}' >energy.yaml
refused "energy was not judged" evidence.json --policy energy.yaml "${pair[@]}"
policy 'environment: {onnxruntime version: 1.0.0}' >versions.yaml
refused "another version of the runtime" evidence.json --policy versions.yaml "${pair[@]}"
refused "nothing to compare production with" evidence.json --policy policy.yaml --model new.onnx
{ echo 'version https://git-lfs.github.com/spec/v1'; echo "oid sha256:$(sha256sum new.onnx | cut -d' ' -f1)"; echo 'size 1'; } >pointer.onnx
refused "a Git LFS pointer" evidence.json --policy policy.yaml --model pointer.onnx --production now.onnx
policy 'devices: [NVIDIA H100 80GB HBM3]' >device.yaml
refused "another device" evidence.json --policy device.yaml "${pair[@]}"

echo "== the deploy gate takes it in place of a measurement"
cp repository/tunegate.yaml .
tunegate deploy-gate --production now.onnx --candidate new.onnx --evidence evidence.json --evidence-policy policy.yaml

echo "== with the usual rule for the tail it measures"
sed -i 's/tail-margin-percent: 1000/tail-margin-percent: 10/' tunegate.yaml
tunegate deploy-gate --production now.onnx --candidate new.onnx --evidence evidence.json --evidence-policy policy.yaml \
  --gate-seconds 5 2>"$place/log" || true # five seconds may leave it inconclusive
grep "evidence refused" "$place/log"
