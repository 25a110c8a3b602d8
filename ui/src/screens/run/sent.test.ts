import { expect, it } from "vitest";

import { noteSent, sentTo } from "./sent";

it("counts the commands to the run that got the last one, and no other", () => {
  expect(sentTo("a")).toBe(0);
  noteSent("a");
  const first = sentTo("a");
  noteSent("a");
  expect(sentTo("a")).toBeGreaterThan(first);
  expect(sentTo("b")).toBe(0);
});
