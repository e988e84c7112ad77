#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031
# As the plugins of Buildkite are tested, without its plugin-tester's image.

setup() {
  hook="$BATS_TEST_DIRNAME/../hooks/command"
  stub="$BATS_TEST_TMPDIR/bin"
  mkdir -p "$stub"
  printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit "${TUNEGATE_CODE:-0}"\n' >"$stub/tunegate"
  chmod +x "$stub/tunegate"
  export PATH="$stub:$PATH"
  export BUILDKITE_PLUGIN_NAME=TUNEGATE
}

@test "without options it runs in the usual directory" {
  run "$hook"
  [ "$status" -eq 0 ]
  [ "$output" = "<run><--ci><buildkite><--out><.tunegate>" ]
}

@test "options are handed on as one word each" {
  export BUILDKITE_PLUGIN_TUNEGATE_OUT='out $(touch /tmp/planted)'
  export BUILDKITE_PLUGIN_TUNEGATE_CONFIG='models/a b.yaml'
  export BUILDKITE_PLUGIN_TUNEGATE_ARGUMENTS_0='--minutes'
  export BUILDKITE_PLUGIN_TUNEGATE_ARGUMENTS_1='5; exit 0'
  run "$hook"
  expected='<run><--ci><buildkite><--out><out $(touch /tmp/planted)><--config><models/a b.yaml>'
  [ "$output" = "$expected<--minutes><5; exit 0>" ]
}

@test "the name of the options is that of the plugin's repository" {
  export BUILDKITE_PLUGIN_NAME=OURS BUILDKITE_PLUGIN_OURS_OUT=there
  run "$hook"
  [ "$output" = "<run><--ci><buildkite><--out><there>" ]
}

@test "the exit code is tunegate's" {
  export TUNEGATE_CODE=3
  run "$hook"
  [ "$status" -eq 3 ]
}

@test "a cancelled job reaches tunegate, which is the process of the hook" {
  printf '#!/bin/bash\ntrap "exit 130" TERM\necho $$ >"%s/pid"\nwhile :; do sleep 0.05; done\n' \
    "$BATS_TEST_TMPDIR" >"$stub/tunegate"
  "$hook" 3>&- &
  hook_pid=$!
  for _ in $(seq 100); do [ -s "$BATS_TEST_TMPDIR/pid" ] && break; sleep 0.05; done
  [ "$(cat "$BATS_TEST_TMPDIR/pid")" -eq "$hook_pid" ]
  kill -TERM "$hook_pid"
  code=0
  wait "$hook_pid" || code=$?
  [ "$code" -eq 130 ]
}

@test "the output directory is uploaded beside what the step uploads" {
  environment="$BATS_TEST_DIRNAME/../hooks/environment"
  run bash -c "source '$environment' && printf %s \"\$BUILDKITE_ARTIFACT_PATHS\""
  [ "$output" = ".tunegate/*" ]
  export BUILDKITE_ARTIFACT_PATHS='logs/*' BUILDKITE_PLUGIN_TUNEGATE_OUT=out
  run bash -c "source '$environment' && printf %s \"\$BUILDKITE_ARTIFACT_PATHS\""
  [ "$output" = "logs/*;out/*" ]
  export BUILDKITE_PLUGIN_TUNEGATE_ARTIFACTS=false
  run bash -c "source '$environment' && printf %s \"\$BUILDKITE_ARTIFACT_PATHS\""
  [ "$output" = "logs/*" ]
}
