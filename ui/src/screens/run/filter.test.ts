import { expect, test } from "vitest";

import { fits, foundBoxes, isEmpty, parseFilter } from "./filter";

test("words with a known name filter by it, all others are text", () => {
  expect(parseFilter("state:failed Kind:ask box:ship a:b card")).toEqual({ states: ["failed"], kinds: ["ask"], boxes: ["ship"], texts: ["a:b", "card"] });
  expect(isEmpty(parseFilter("  "))).toBe(true);
});

test("all words must fit", () => {
  const charge = { box: "order/charge", kind: "step", marks: ["failed", "done"], text: "charge card" };
  expect(fits(parseFilter("state:failed kind:step card"), charge)).toBe(true);
  expect(fits(parseFilter("box:charge"), charge)).toBe(true);
  expect(fits(parseFilter("box:harge"), charge)).toBe(false);
  expect(fits(parseFilter("state:failed kind:ask"), charge)).toBe(false);
});

test("a box with one failed place is found by state:failed, whatever the others do", () => {
  const picture = { digest: "", title: "", width: 0, height: 0, arrows: [], groups: [], boxes: [{ id: "a", x: 0, y: 0, w: 1, h: 1 }, { id: "b", x: 0, y: 0, w: 1, h: 1 }] };
  const standing = { seq: 1, at: null, status: "running", arrows: {}, boxes: { a: { mark: "working" as const, open: 1, failed: 1 } } };
  expect([...foundBoxes("state:failed", picture, standing)!]).toEqual(["a"]);
  expect(foundBoxes("", picture, standing)).toBeNull();
});
