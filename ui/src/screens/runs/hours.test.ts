import { expect, it } from "vitest";

import { lengthText, selected } from "./hours";

it("selects in either direction", () => {
  expect(selected(5, 2)).toEqual([2, 5]);
  expect(selected(2, 2)).toEqual([2, 2]);
});

it.each([[1, "1 h"], [24, "24 h"], [25, "25 h"], [72, "3 d"]])("%s hours are %s", (hours, text) => expect(lengthText(hours)).toBe(text));
