import { describe, expect, it } from "vitest";

import type { LogLine } from "../../api/schema";
import { printedRows, withLines } from "./printed-lines";

const line = (number: number, place = "pay", attempt = 1): LogLine => ({ number, place, attempt, at: "2026-01-01T00:00:00Z", level: "info", source: "stdout", text: `${number}` });

describe("what steps printed", () => {
  it("takes each line once and keeps the newest", () => {
    const known = withLines([], [line(1), line(2)]);
    expect(withLines(known, [line(2), line(3)]).map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(withLines(known, [line(3), line(4)], 2).map(({ number }) => number)).toEqual([3, 4]);
  });

  it("says who printed, and how many lines were left out", () => {
    const rows = printedRows([line(3), line(4), line(5, "pay", 2), line(9, "ship")]);
    expect(rows.map((row) => (row.kind === "line" ? row.line.number : row.kind === "gap" ? `-${row.lost}` : `${row.place} ${row.attempt}`))).toEqual([
      "-2", "pay 1", 3, 4, "pay 2", 5, "-3", "ship 1", 9,
    ]);
  });
});
