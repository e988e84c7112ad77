// Runs a composite action.yml on this host with GitHub's own expression evaluator.
// usage: node composite_runner.mjs ACTION_DIRECTORY CONTEXT.json   (the result goes to stdout as JSON)
import { evaluator } from "./expressions.mjs";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import YAML from "yaml";

const [, , actionDirectory, contextFile] = process.argv;
const given = JSON.parse(fs.readFileSync(contextFile, "utf8"));
const action = YAML.parse(fs.readFileSync(path.join(actionDirectory, "action.yml"), "utf8"));
let failed = false;

const { evaluate, expand } = evaluator({
  success: () => !failed,
  failure: () => failed,
  cancelled: () => false,
});

function readEntries(file) {
  const entries = {};
  const lines = fs.readFileSync(file, "utf8").split("\n");
  for (let i = 0; i < lines.length; i++) {
    if (!lines[i]) continue;
    const equals = lines[i].indexOf("=");
    const heredoc = lines[i].indexOf("<<");
    if (heredoc > 0 && (equals < 0 || heredoc < equals)) {
      const [name, delimiter] = [lines[i].slice(0, heredoc), lines[i].slice(heredoc + 2)];
      const body = [];
      for (i++; lines[i] !== delimiter; i++) {
        if (i >= lines.length) throw new Error(`no delimiter ${delimiter}`);
        body.push(lines[i]);
      }
      entries[name] = body.join("\n");
    } else if (equals >= 0) entries[lines[i].slice(0, equals)] = lines[i].slice(equals + 1);
    else throw new Error(`invalid line ${lines[i]}`);
  }
  return entries;
}

const inputs = {};
for (const [name, spec] of Object.entries(action.inputs ?? {}))
  inputs[name] = given.inputs[name] ?? expand(spec.default ?? "", { github: given.github });

const context = { github: given.github, inputs, steps: {}, runner: given.runner ?? {}, matrix: given.matrix ?? null };
let log = "";
let summary = "";
let exitCode = 0;
for (const [index, step] of action.runs.steps.entries()) {
  const condition = step.if === undefined ? "success()" : String(step.if);
  const id = step.id ?? `__${index}`;
  if (evaluate(condition, context).coerceString() !== "true") {
    context.steps[id] = { outputs: {}, outcome: "skipped" };
    continue;
  }
  const files = {};
  for (const name of ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY"]) {
    files[name] = path.join(given.temp, `${name}-${randomUUID()}`);
    fs.writeFileSync(files[name], "");
  }
  const env = { ...given.env, GITHUB_ACTION_PATH: actionDirectory, ...files };
  for (const [name, value] of Object.entries(step.env ?? {})) env[name] = expand(value, context);
  const script = path.join(given.temp, `${randomUUID()}.sh`);
  fs.writeFileSync(script, expand(step.run, context));
  const done = spawnSync("bash", ["--noprofile", "--norc", "-e", "-o", "pipefail", script], {
    cwd: given.github.workspace,
    env,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  log += done.stdout + done.stderr;
  summary += fs.readFileSync(files.GITHUB_STEP_SUMMARY, "utf8");
  context.steps[id] = {
    outputs: readEntries(files.GITHUB_OUTPUT),
    outcome: done.status === 0 ? "success" : "failure",
  };
  if (done.status !== 0) {
    failed = true;
    exitCode ||= done.status ?? 1;
  }
}
const outputs = {};
for (const [name, spec] of Object.entries(action.outputs ?? {}))
  outputs[name] = expand(spec.value, context);
process.stdout.write(JSON.stringify({ outputs, summary, log, exitCode, steps: context.steps }));
