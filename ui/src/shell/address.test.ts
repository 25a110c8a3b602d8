import { expect, test } from "vitest";

import { parseRoute, pathTo, queryText } from "./address";

test("an id with slashes, percent signs and spaces survives the address", () => {
  for (const id of ["a/b", "100%", "a%2Fb", "käse 7", "..", "?x=1#y"]) {
    expect(parseRoute(pathTo("runs", id))).toEqual({ screen: "run", id });
  }
});

test("an address that no screen has is unknown", () => {
  expect(parseRoute("/runs/a/b/c/d").screen).toBe("unknown");
  expect(parseRoute("/nothing").screen).toBe("unknown");
  expect(parseRoute("/runs/%E0%A4%A").screen).toBe("run");
});

test("absent choices are left out of the address", () => {
  expect(queryText({ a: "x y", b: null, c: undefined, d: 0, e: "" })).toBe("?a=x+y&d=0");
});
