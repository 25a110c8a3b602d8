import { expect, test } from "vitest";

import type { StandingView } from "../../api/schema";
import { newsText, withChanges } from "./live-patches";

const before: StandingView = { seq: 3, at: null, status: "running", boxes: { a: { mark: "working", open: 1 }, b: { mark: "done", done: 1 } }, arrows: { "a>b": 1 } };

test("a change of the standing replaces what it names and leaves the rest", () => {
  const after = withChanges(before, { seq: 4, at: null, status: "completed", digest: "d", boxes: { a: { mark: "done", done: 1 } }, arrows: { "b>c": 1 }, removed: ["b"] });
  expect(after.boxes).toEqual({ a: { mark: "done", done: 1 } });
  expect(after.arrows).toEqual({ "a>b": 1, "b>c": 1 });
  expect([after.seq, after.status]).toEqual([4, "completed"]);
  expect(before.boxes["b"]).toBeDefined();
});

test("what was done and what failed is said", () => {
  const after = withChanges(before, { seq: 5, at: null, status: "running", digest: "d", boxes: { a: { mark: "failed", done: 2, failed: 1 } }, arrows: {}, removed: [] });
  expect(newsText(before, after)).toBe("2 done, 1 failed");
  expect(newsText(undefined, after)).toBe("");
});
