import { describe, expect, it } from "vitest";

import { failureText, pathBelow, safeNext } from "./sign-in";

describe("where to go after sign-in", () => {
  it("is the path below the base, with what was chosen", () => {
    expect(pathBelow("/weft", "https://x.example/weft/runs/a%2Fb?at=3#log")).toBe("/runs/a%2Fb?at=3#log");
    expect(pathBelow("", "https://x.example/runs")).toBe("/runs");
  });

  it("is nothing for an address elsewhere", () => {
    expect(pathBelow("/weft", "https://x.example/other/runs")).toBe("");
    expect(pathBelow("", "no address")).toBe("");
  });

  it.each(["//evil.example/", "/\\evil.example", "https://evil.example", "runs", "", "/a b"])("is never %s", (next) => {
    expect(safeNext(next)).toBe("/");
  });

  it.each(["/..//evil.example", "/a/../..//evil.example", "/%2E.//evil.example", "/..?a", "/.", "/a\n", "/a\u2028", "/a\u0000"])(
    "does not leave the base by %j",
    (next) => {
      expect(safeNext(next)).toBe("/");
    },
  );

  it.each(["/", "/runs/a..b/.c", "/runs/ä?q=/../x#log", "/runs//a"])("may be %s", (next) => {
    expect(safeNext(next)).toBe(next);
  });
});

it("names a failure that it does not know", () => {
  expect(failureText("access.unknown")).toContain("not signed in");
  expect(failureText("other.code")).toContain("other.code");
});
