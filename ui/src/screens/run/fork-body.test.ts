import { expect, test } from "vitest";

import { forkBody, type Typed } from "./fork-body";

const typed: Typed = { point: "before", place: "charge", at: 0, input: "", result: "", to: "", id: "", effects: "perform" };

test("a fork before a place says so and nothing else", () => {
  expect(forkBody(typed)).toEqual({ before: "charge" });
  expect(forkBody({ ...typed, point: "failure" })).toEqual({ failure: true });
  expect(forkBody({ ...typed, point: "start" })).toEqual({});
  expect(forkBody({ ...typed, point: "at", at: 412 })).toEqual({ at: 412 });
});

test("values are read when they are sent", () => {
  expect(forkBody({ ...typed, input: '{"cents": 1}', result: '"paid"', to: " live ", id: "x", effects: "reuse" })).toEqual({
    before: "charge", input: { cents: 1 }, set: { charge: "paid" }, to: "live", id: "x", effects: "reuse",
  });
});

test("what is not JSON is named", () => {
  expect(forkBody({ ...typed, input: "[1]" })).toHaveProperty("problem");
  expect(forkBody({ ...typed, result: "paid" })).toHaveProperty("problem");
});
