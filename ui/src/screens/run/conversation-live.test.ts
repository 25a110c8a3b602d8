import { expect, test } from "vitest";

import type { ChunkView } from "../../api/schema";
import { SILENCE, withSaid } from "./conversation-live";

function chunk(text: string, more: object = {}, attempt = 1): ChunkView {
  return { offset: 1, at: "2026-01-01T00:00:00Z", by: "turn/~0/model", attempt, chunk: { run: "a", turn: 0, kind: "text", text, ...more } } as ChunkView;
}

test("text of a turn runs on", () => {
  const said = withSaid(withSaid(SILENCE, [chunk("Good ")], "a"), [chunk("day"), chunk("hm", { kind: "reasoning" })], "a");
  expect(said.get(0)).toEqual({ attempt: 1, text: "Good day", reasoning: "hm" });
});

test("a later attempt begins its turn anew, and an earlier one adds nothing to it", () => {
  const said = withSaid(SILENCE, [chunk("cut o"), chunk("whole", {}, 2), chunk("ff")], "a");
  expect(said.get(0)).toEqual({ attempt: 2, text: "whole", reasoning: "" });
});

test("other runs of the tree, other kinds and what is no chunk of an agent are left out", () => {
  const strange = [chunk("x", { run: "b" }), chunk("x", { kind: "usage" }), chunk("x", { turn: "0" }), { ...chunk("x"), chunk: "words" } as ChunkView];
  expect(withSaid(SILENCE, strange, "a").size).toBe(0);
});

test("only the newest turns are kept", () => {
  const said = withSaid(SILENCE, [0, 1, 2, 3, 4, 5].map((turn) => chunk("x", { turn })), "a");
  expect([...said.keys()]).toEqual([2, 3, 4, 5]);
});
