import { expect, it } from "vitest";

import { bulkCommand, bulkFilterOf, pairOf } from "./bulk-text";
import { NO_FILTER } from "./filter";

it("a bulk is for the runs of the list", () => {
  const filter = { ...NO_FILTER, status: ["failed" as const, "held" as const], workflow: "order", where: ["customer=7", 'name="7"', "city=Kiel = best"], waits: "person", since: "1h" };
  expect(bulkFilterOf(filter, Date.parse("2026-01-01T01:00:00Z"))).toEqual({
    status: ["failed", "held"], workflow: "order", where: { customer: 7, name: "7", city: "Kiel = best" }, waits: ["person"], since: "2026-01-01T00:00:00.000Z",
  });
});

it("values of attributes are read as the server reads them", () => {
  expect(pairOf("a=null")).toEqual(["a", null]);
  expect(pairOf("a={x")).toEqual(["a", "{x"]);
});

it("is a command, by ids or by filter", () => {
  expect(bulkCommand("retry", ["a", "b c"], NO_FILTER, "it's fixed")).toBe("weft retry a 'b c' --reason 'it'\\''s fixed'");
  expect(bulkCommand("cancel", null, { ...NO_FILTER, workflow: "order", status: ["failed"], where: ["a=1"] }, "")).toBe("weft cancel --workflow order --status failed --where a=1");
  expect(bulkCommand("cancel", null, { ...NO_FILTER, style: "graph", q: "x" }, "")).toContain("# for more runs: the command does not know style, q");
});
