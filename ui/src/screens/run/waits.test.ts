import { expect, test } from "vitest";

import type { Waiting } from "../../api/schema";
import { gatherWaits } from "./waits";

const wait = (location: string, what: string, since: string): Waiting => ({ kind: "step", location, what, since, box: "work/slow" });

test("steps of one box that read alike are one line, since the first of them", () => {
  const found = gatherWaits([wait("work/~1/slow", "step slow", "2026-01-01T00:00:02Z"), wait("work/~0/slow", "step slow", "2026-01-01T00:00:01Z"), wait("ask", "an answer", "2026-01-01T00:00:00Z")]);
  expect(found.map(({ count, wait: { what, since } }) => [count, what, since])).toEqual([[2, "step slow", "2026-01-01T00:00:01Z"], [1, "an answer", "2026-01-01T00:00:00Z"]]);
});
