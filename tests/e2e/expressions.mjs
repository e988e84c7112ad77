// GitHub's own evaluator of `${{ }}`, with the status functions of a job or a step.
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";

function wrap(value) {
  if (value === null || value === undefined) return new data.Null();
  if (typeof value === "string") return new data.StringData(value);
  if (typeof value === "number") return new data.NumberData(value);
  if (typeof value === "boolean") return new data.BooleanData(value);
  if (Array.isArray(value)) return new data.Array(...value.map(wrap));
  return new data.Dictionary(...Object.entries(value).map(([key, v]) => ({ key, value: wrap(v) })));
}

// `status` says what success(), failure() and cancelled() are.
export function evaluator(status) {
  const named = Object.entries({ always: () => true, ...status }).map(([name, call]) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(call()),
  }));
  const functions = new Map(named.map((each) => [each.name, each]));

  function evaluate(expression, context) {
    const tokens = new Lexer(expression).lex().tokens;
    const tree = new Parser(tokens, Object.keys(context), named).parse();
    return new Evaluator(tree, wrap(context), functions).evaluate();
  }

  function expand(text, context) {
    return String(text).replace(/\$\{\{([\s\S]*?)\}\}/g, (_, inner) =>
      evaluate(inner.trim(), context).coerceString());
  }
  return { evaluate, expand };
}
