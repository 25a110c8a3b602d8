import { describe, expect, it } from "vitest";

import type { ListedRun } from "../../api/schema";
import { firstPage, idsOf, isFull, NO_LIST, ROWS_MAX, withHead, withNews, withNewsJoined, withNextPage, withRows } from "./list";

const run = (id: string, seq = 1, status: ListedRun["status"] = "running"): ListedRun => ({
  id, seq, status, workflow: "order", version: "v", style: "code", created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z", ended_at: null, attributes: {}, fault: null,
}) as ListedRun;
const three = firstPage({ runs: [run("c"), run("b"), run("a")], cursor: "next" });

describe("pages", () => {
  it("follow each other without repeating a row", () => {
    const list = withNextPage(three, "next", { runs: [run("a", 2), run("z")], cursor: null });
    expect(idsOf(list)).toEqual(["c", "b", "a", "z"]);
    expect(list.rows.get("a")?.seq).toBe(2);
    expect(list.next).toBeNull();
  });

  it("that were asked for before the list changed are dropped", () => expect(withNextPage(three, "other", { runs: [run("z")], cursor: null })).toBe(three));

  it("end at two thousand rows", () => {
    const many = Array.from({ length: ROWS_MAX + 5 }, (_, at) => run("r" + at));
    const list = withNextPage({ ...NO_LIST, next: "n" }, "n", { runs: many, cursor: "more" });
    expect(idsOf(list)).toHaveLength(ROWS_MAX);
    expect(isFull(list)).toBe(true);
  });
});

describe("rows", () => {
  it("change in place", () => {
    const list = withRows(three, [run("b", 5, "failed"), run("unknown")]);
    expect(idsOf(list)).toEqual(["c", "b", "a"]);
    expect(list.rows.get("b")).toMatchObject({ seq: 5, status: "failed" });
  });

  it("never go back to an older state", () => {
    const list = withNews(three, [{ run: "a", seq: 7, status: "completed", at: "2026-01-01T00:01:00Z" }]);
    expect(list.rows.get("a")).toMatchObject({ status: "completed", ended_at: "2026-01-01T00:01:00Z" });
    expect(withRows(list, [run("a", 3)])).toBe(list);
    expect(withNews(list, [{ run: "a", seq: 6, status: "running", at: "x" }])).toBe(list);
  });

  it("that did not change make no new list", () => expect(withRows(three, [run("a")])).toBe(three));
});

describe("new runs", () => {
  it("wait until they may join, and then join at the top", () => {
    const list = withHead(three, { runs: [run("e"), run("d"), run("c", 2), run("b")], cursor: "x" });
    expect(idsOf(list)).toEqual(["c", "b", "a"]);
    expect(list.news.map(({ id }) => id)).toEqual(["e", "d"]);
    expect(list.next).toBe("next");
    expect(idsOf(withNewsJoined(list))).toEqual(["e", "d", "c", "b", "a"]);
  });

  it("that are more than a page begin the list again", () => {
    const list = withNewsJoined(withHead(three, { runs: [run("e"), run("d")], cursor: "x" }));
    expect(idsOf(list)).toEqual(["e", "d"]);
    expect(list.next).toBe("x");
  });

  it("are no news twice", () => expect(withHead(withNewsJoined(withHead(three, { runs: [run("d"), run("c")], cursor: null })), { runs: [run("d"), run("c")], cursor: null }).news).toEqual([]));
});
