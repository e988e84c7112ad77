// Expands texts with `${{ }}` as GitHub would: {texts, context, status} on stdin, a list of strings on stdout.
import { evaluator } from "./expressions.mjs";
import fs from "node:fs";

const { texts, context, status } = JSON.parse(fs.readFileSync(0, "utf8"));
const is = (name) => () => status === name;
const { expand } = evaluator({
  success: is("success"),
  failure: is("failure"),
  cancelled: is("cancelled"),
});
process.stdout.write(JSON.stringify(texts.map((text) => expand(text, context))));
