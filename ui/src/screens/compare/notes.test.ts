import { expect, test } from "vitest";

import type { BoxDifference, BoxSide } from "../../api/schema";
import { noteOf, notesOf } from "./notes";

const done: BoxSide = { mark: "done", times: 1, started_at: 0, ended_at: 1, took_ms: 1 };
const box: BoxDifference = { box: "x", presence: "both", is_changed: false, a: done, b: done, first: null };

test("a box says in which run it is", () => {
  expect(noteOf({ ...box, presence: "b", a: null })?.text).toBe("only in B");
  expect(noteOf({ ...box, presence: "a", b: null })?.text).toBe("only in A");
});

test("a box of both runs says how it differs, and nothing if it does not", () => {
  expect(noteOf(box)).toBeNull();
  expect(noteOf({ ...box, b: { ...done, mark: "failed" } })?.text).toBe("done, in B failed");
  expect(noteOf({ ...box, is_changed: true })?.text).toBe("other values");
  expect(notesOf([box]).size).toBe(0);
});
