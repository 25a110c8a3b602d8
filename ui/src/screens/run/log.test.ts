import { describe, expect, it } from "vitest";

import type { ChunkView } from "../../api/schema";
import { filterQuery, isNamed } from "./filter-query";
import { KEPT_MAX, opened, rowsInSight, withNewer, withOlder } from "./log-window";
import { formerPieces, NOTHING, withChunks } from "./output-pieces";
import { nextSpeed, played } from "./play";

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);
const page = (from: number, to: number) => ({ items: range(from, to), before: from > 1 ? from : null, after: null });

describe("a window of the log", () => {
  it("counts the rows that come in above, so that scrolling can make up for them", () => {
    const window = withOlder(opened(page(201, 401)), page(1, 201), String);
    expect(window).toMatchObject({ before: null, above: 200 });
    expect(window.items).toEqual(range(1, 401));
  });

  it("takes a row in once, in its newest form", () => {
    const keyOf = ([number]: [number, string]): string => String(number);
    const window = withNewer(opened({ items: [[1, "open"]] as [number, string][], before: null, after: null }), { items: [[1, "done"], [2, "open"]], before: 1, after: null }, keyOf);
    expect(window.items).toEqual([[1, "done"], [2, "open"]]);
  });

  it("keeps so many rows and drops those at the other end", () => {
    let window = opened(page(1, 201));
    for (let from = 201; from < KEPT_MAX + 601; from += 200) window = withNewer(window, page(from, from + 200), String);
    expect(window.items).toHaveLength(KEPT_MAX);
    expect(window.above).toBe(-600);
    expect(window.before).toBeNaN();
    const back = withOlder(window, page(401, 601), String);
    expect(back.items[0]).toBe(401);
    expect(back.after).toBeNaN();
  });

  it("puts only the rows in sight into the document", () => {
    expect(rowsInSight(2400, 240, 24, 1000)).toEqual({ first: 92, last: 118 });
    expect(rowsInSight(0, 240, 24, 3)).toEqual({ first: 0, last: 3 });
    expect(rowsInSight(9999, 240, 24, 3)).toEqual({ first: 3, last: 3 });
  });
});

describe("the filter of a run", () => {
  it("asks the server for what it can search for", () => {
    expect(filterQuery("")).toEqual({});
    expect(filterQuery("state:failed card state:broken kind:ask declined")).toEqual({ q: "card declined", mark: ["failed"], kind: ["ask"] });
  });

  it("finds a box by its id or by the end of its path", () => {
    expect(["ship", "order/ship", "shipping"].map((box) => isNamed("box:ship", box))).toEqual([true, true, false]);
    expect(isNamed("card", "ship")).toBe(true);
  });
});

describe("output", () => {
  const chunk = (offset: number, text: unknown, attempt = 1): ChunkView => ({ offset, at: "2026-01-01T00:00:00Z", by: "speak", attempt, chunk: text });

  it("runs on as text and has rows for anything else", () => {
    const { pieces } = withChunks(NOTHING, [chunk(1, "a "), chunk(2, "b"), chunk(3, { n: 1 }), chunk(4, { n: 2 })]);
    expect(pieces.map((piece) => piece.text)).toEqual(["a b", '{"n":1}', '{"n":2}']);
  });

  it("takes a chunk in once", () => {
    const once = withChunks(NOTHING, [chunk(1, "a")]);
    expect(withChunks(once, [chunk(1, "a"), chunk(2, "b")]).pieces[0]!.text).toBe("ab");
  });

  it("greys what a former attempt wrote", () => {
    const { pieces } = withChunks(NOTHING, [chunk(1, "a"), chunk(2, "b", 2)]);
    expect([...formerPieces(pieces)]).toEqual([1]);
  });

  it("keeps the newest and says that it was cut", () => {
    const found = withChunks(NOTHING, [chunk(1, { a: "x".repeat(80) }), chunk(2, { b: "y".repeat(80) })], 100);
    expect(found.isCut).toBe(true);
    expect(found.pieces.map((piece) => piece.key)).toEqual([2]);
  });
});

describe("playing", () => {
  const steps = [{ seq: 2, at: 100 }, { seq: 3, at: 200 }, { seq: 4, at: 90_000 }, { seq: 5, at: 90_050 }];

  it("goes as fast as the run did, times the speed", () => {
    expect(played({ seq: 1, clock: 0 }, steps, 100, 1)).toEqual({ seq: 2, clock: 100 });
    expect(played({ seq: 1, clock: 0 }, steps, 100, 4).seq).toBe(3);
  });

  it("skips a time in which nothing happened", () => {
    expect(played({ seq: 3, clock: 210 }, steps, 100, 1).seq).toBe(4);
  });

  it("has three speeds", () => {
    expect([nextSpeed(1), nextSpeed(4), nextSpeed(16)]).toEqual([4, 16, 1]);
  });
});
