import { expect, it } from "vitest";

import { joinMoment, localZone, splitMoment } from "./moments";

it.each([
  ["2026-01-02T10:00:00Z", "2026-01-02T10:00:00", "Z"],
  ["2026-01-02T10:00:00.120+01:00", "2026-01-02T10:00:00.120", "+01:00"],
  ["2026-01-02 10:00", "2026-01-02T10:00", ""],
])("%s is taken apart", (text, local, zone) => expect(splitMoment(text, true)).toEqual({ local, zone }));

it.each(["2026-01-02T10:00:00.123456Z", "tomorrow", "2026-01-02"])("%s is left as text", (text) => expect(splitMoment(text, true)).toBeNull());

it("a date has no zone", () => {
  expect(splitMoment("2026-01-02", false)).toEqual({ local: "2026-01-02", zone: "" });
  expect(splitMoment("2026-01-02T10:00", false)).toBeNull();
});

it("seconds are always written", () => {
  expect(joinMoment("2026-01-02T10:00", "+01:00")).toBe("2026-01-02T10:00:00+01:00");
  expect(joinMoment("2026-01-02T10:00:30", "Z")).toBe("2026-01-02T10:00:30Z");
});

it("the zone of this browser is an offset", () => expect(localZone("2026-01-02T10:00")).toMatch(/^[+-]\d\d:\d\d$/));
