import { describe, expect, it } from "vitest";

import { barsOf, countsPath, merged, type Bar } from "./timeline-bars";
import { columnEdges } from "./timeline-columns";
import { makeScale, msOf, panBy, ticksOf, viewBetween, xOf, zoomAround } from "./timeline-scale";

const DAY = 86_400_000;
const ALL = { since: 0, until: DAY + 20_000 };
const GAP = { since: 10_000, until: DAY + 10_000 };

describe("the scale of the timeline", () => {
  it("folds a gap to a break and gives the rest of the width to what happened", () => {
    const scale = makeScale(ALL, [GAP], 1000);
    const [before, fold, after] = scale.pieces;
    expect(fold).toMatchObject({ gap: GAP, width: 76 });
    expect(before!.width).toBeCloseTo(after!.width);
    expect(before!.width + fold!.width + after!.width).toBeCloseTo(1000);
  });

  it("leads from moments to pixels and back", () => {
    const scale = makeScale(ALL, [GAP], 1000);
    for (const ms of [0, 5_000, 10_000, DAY / 2, DAY + 10_000, DAY + 15_000, DAY + 20_000]) expect(msOf(scale, xOf(scale, ms))).toBeCloseTo(ms, 0);
  });

  it("keeps the moment below the pointer when it zooms", () => {
    const scale = makeScale({ since: 0, until: 1000 }, [], 500);
    const view = zoomAround(scale, 100, 2, { since: 0, until: 1000 });
    expect(xOf(makeScale(view, [], 500), 200)).toBeCloseTo(100);
  });

  it("moves an edge inside a break to an end of its gap", () => {
    const scale = makeScale(ALL, [GAP], 1000);
    const middle = scale.pieces[1]!.x + 50;
    expect(viewBetween(scale, middle, 1000, ALL).since).toBe(GAP.until);
  });

  it("never shows less than a few milliseconds or more than all", () => {
    const scale = makeScale({ since: 0, until: 1000 }, [], 500);
    const all = { since: 0, until: 1000 };
    expect(viewBetween(scale, -100, 900, all)).toEqual(all);
    const small = viewBetween(scale, 100, 100, all);
    expect(small.until - small.since).toBeGreaterThan(0);
    expect(panBy(makeScale({ since: 100, until: 200 }, [], 500), -5000, all)).toEqual({ since: 0, until: 100 });
  });

  it("has round ticks that do not overlap", () => {
    const ticks = ticksOf(makeScale({ since: 1234, until: 61_234 }, [], 800));
    expect(ticks.length).toBeGreaterThan(2);
    expect(ticks.every((tick) => tick.ms % tick.step === 0)).toBe(true);
    expect(ticks.slice(1).every((tick, at) => tick.x - ticks[at]!.x >= 80)).toBe(true);
  });

  it("stands when nothing has happened yet", () => {
    const scale = makeScale({ since: 5, until: 6 }, [], 300);
    expect(xOf(scale, 5)).toBe(0);
    expect(ticksOf(scale).length).toBeGreaterThan(0);
  });
});

describe("bars", () => {
  const row = (spans: object[]) => ({ box: "a", places: 1, since: 0, spans }) as never;
  const scale = makeScale({ since: 0, until: 1000 }, [], 1000);

  it("have the form of what was done, and a cross for a failed attempt", () => {
    const found = barsOf(row([
      { number: 1, mark: "done", since: 500, until: 500 },
      { number: 1, mark: "working", since: 0, until: 100, retries: true },
      { number: 1, mark: "waiting", since: 100, until: 300, wait: "retry" },
      { number: 1, mark: "working", since: 300, until: 500 },
    ]), scale, 1000, 50);
    expect(found.bars.map((bar) => bar.look)).toEqual(["done", "retry", "done"]);
    expect(found.crosses).toEqual([100]);
  });

  it("reach until now while they are open", () => {
    const [bar] = barsOf(row([{ number: 1, mark: "waiting", since: 400, wait: "person" }]), scale, 900, 50).bars;
    expect(bar).toEqual({ x: 400, width: 500, look: "patient", number: 1 });
  });

  it("are merged until there are few enough", () => {
    const many: Bar[] = Array.from({ length: 1000 }, (_, at) => ({ x: at, width: 0.5, look: at % 2 ? "done" : "failed", number: at }));
    expect(merged(many, 20).length).toBeLessThanOrEqual(20);
    expect(merged(many.slice(0, 5), 20)).toHaveLength(5);
  });

  it("become one outline where there are many", () => {
    expect(countsPath([0, 2, 2, 1, 0], [0, 10, 20, 30, 40, 50], 12)).toBe("M10 12V2H30V7H40V12Z");
    expect(countsPath([1], [0, 10], 12)).toBe("M0 12V2H10V12Z");
  });

  it("count in columns that leave gaps out", () => {
    const edges = columnEdges({ since: 0, until: DAY + 20_000, gaps: [GAP] }, 4);
    expect(edges).toEqual([0, 5_000, 10_000, DAY + 15_000, DAY + 20_000]);
  });
});
