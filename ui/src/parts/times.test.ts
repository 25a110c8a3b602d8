import { expect, test } from "vitest";

import { ageText, agoText, durationText, momentText } from "./times";

test("durations have at most two units", () => {
  expect(durationText(3)).toBe("3 ms");
  expect(durationText(1900)).toBe("1.9 s");
  expect(durationText(134_000)).toBe("2 min 14 s");
  expect(durationText(97_200_000)).toBe("1 d 3 h");
  expect(durationText(-5)).toBe("0 s");
});

test("ages have one unit and say the direction", () => {
  expect(ageText(720_000)).toBe("12 min");
  expect(agoText(1000, 721_000)).toBe("12 min ago");
  expect(agoText(3_601_000, 1000)).toBe("in 1 h");
});

test("a moment in UTC is exact to the millisecond", () => {
  expect(momentText(Date.UTC(2026, 0, 2, 3, 4, 5, 6), "utc")).toBe("2026-01-02 03:04:05.006");
});
