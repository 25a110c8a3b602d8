import { expect, it } from "vitest";

import { readChosen, withinRun } from "./chosen";

it("takes an event beyond the last one for now", () => {
  const chosen = readChosen("order-1", new URLSearchParams("at=99&sel=charge"));
  expect(withinRun(chosen, 12)).toEqual({ ...chosen, at: null });
  expect(withinRun(chosen, 99)).toBe(chosen);
});
