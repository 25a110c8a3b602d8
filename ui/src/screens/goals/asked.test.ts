import { expect, test } from "vitest";

import { pythonLines, readAsked, splitFacts, typedFact, writeAsked } from "./asked";

test("what is asked survives the address", () => {
  const asked = { want: ["send", "log"], given: [{ name: "order_id" }, { name: "total", value: 1.5 }, { name: "note", value: "a,b=c" }] };
  const written = writeAsked(asked);
  const query = new URLSearchParams({ want: written.want!, given: written.given! });
  for (const one of written.fact) query.append("fact", one);
  expect(readAsked(new URLSearchParams(query.toString()))).toEqual({ ...asked, isAll: null });
});

test("a typed fact has a value if it has an equals sign", () => {
  expect(typedFact(" order_id ")).toEqual({ name: "order_id" });
  expect(typedFact("total=119")).toEqual({ name: "total", value: 119 });
  expect(typedFact("id=o-1")).toEqual({ name: "id", value: "o-1" });
  expect(typedFact("=x")).toBeNull();
});

test("values are sent apart from names", () => {
  expect(splitFacts([{ name: "a" }, { name: "b", value: null }])).toEqual({ given: ["a"], values: { b: null } });
});

test("Python has its own words for true and null", () => {
  expect(pythonLines(["send"], [{ name: "x", value: { a: true, b: [null] } }])).toContain('{"x": {"a": True, "b": [None]}}');
});
