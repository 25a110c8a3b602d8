import { describe, expect, it } from "vitest";

import { findingsBelow, findingsHere, formFindings, pathParts } from "./form-findings";
import { schemaForm } from "./form-schema";
import { allFindings, draftAsFields, draftAsJson, emptyDraft, formToJson, jsonToForm, newDraft, type Draft } from "./form-values";

const ORDER = {
  type: "object",
  required: ["id", "count", "express", "lines", "note", "address"],
  properties: {
    id: { type: "string" },
    count: { type: "integer", default: 1 },
    price: { type: "number" },
    express: { type: "boolean" },
    size: { enum: ["s", "m", { deep: [1] }] },
    at: { type: "string", format: "date-time" },
    lines: { type: "array", items: { type: "object", required: ["sku"], properties: { sku: { type: "string" }, n: { type: "integer" } } } },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
    tags: { type: "array", items: { type: "string" } },
    address: { type: "object", properties: { city: { type: "string" } } },
    any: {},
  },
};
const FIELD = schemaForm(ORDER);
const roundTrip = (value: unknown): unknown => formToJson(FIELD, jsonToForm(FIELD, value)).value;

describe("a new form", () => {
  it("has defaults filled in and leaves out what is optional", () => {
    expect(formToJson(FIELD, newDraft(ORDER)).value).toEqual({ count: 1, express: false, lines: [], note: null, address: {} });
  });

  it("of a schema with a default has that default", () => {
    const schema = { type: "object", properties: { a: { type: "integer" } }, default: { a: 3, b: 4 } };
    expect(formToJson(schemaForm(schema), newDraft(schema)).value).toEqual({ a: 3, b: 4 });
  });
});

describe("JSON to a form and back loses nothing", () => {
  it.each([
    {}, { id: "" }, { note: null }, { note: "" }, { id: null }, { id: 7, count: "seven", express: "yes", lines: {}, address: [], size: "xl", at: 3 },
    { count: 1e21, price: 0.1 }, { price: -1.5e-7 }, { size: { deep: [1] } }, { lines: [{}, { sku: "a", n: 2 }, { sku: "b", extra: [1, { x: null }] }, 3, null] },
    { tags: ["", "a", null] }, { any: null }, { any: [1, [2, [3]]] }, { more: { than: "the schema" }, constructor: 1, "": 2 },
    { at: "2026-01-01T10:00:00.123456+01:00" }, null, [], "text", 3, true,
    JSON.parse('{"__proto__": {"a": 1}, "address": {"__proto__": 3, "city": "x"}}') as unknown,
  ])("%j", (value) => expect(roundTrip(value)).toEqual(value));

  it("also through the whole form typed as JSON", () => {
    const value = { id: "o-1", lines: [{ sku: "a" }], more: 1 };
    const typed = draftAsJson(FIELD, jsonToForm(FIELD, value)).draft;
    expect(typed.as).toBe("json");
    expect(draftAsFields(FIELD, typed).draft).toEqual(jsonToForm(FIELD, value));
  });

  it("and a draft can be kept as JSON itself", () => {
    const draft = jsonToForm(FIELD, { id: "o-1", lines: [{ sku: "a" }], more: 1 });
    expect(JSON.parse(JSON.stringify(draft))).toEqual(draft);
  });
});

describe("what cannot be read", () => {
  const typed = (fields: Record<string, Draft>): Draft => ({ as: "frame", fields, rest: {} });

  it.each([["seven", "not a number"], ["1.5", "whole number"], ["9007199254740993", "exactly"], ["1e999", "too large"], ["0x10", "not a number"]])(
    "is said at its field: %s", (text, said) => {
      const { value, findings } = formToJson(FIELD, typed({ count: { as: "text", text } }));
      expect(value).toEqual({});
      expect(findings).toEqual([{ path: ["count"], message: expect.stringContaining(said) as string }]);
    },
  );

  it("is said at the row of a JSON field", () => {
    const row: Draft = { as: "json", text: "{sku" };
    expect(formToJson(FIELD, typed({ lines: { as: "rows", items: [emptyDraft(FIELD), row] } })).findings[0]).toMatchObject({ path: ["lines", 1] });
  });

  it("keeps a form from being turned to JSON, and JSON from being turned to a form", () => {
    const wrong = typed({ count: { as: "text", text: "x" } });
    expect(draftAsJson(FIELD, wrong)).toMatchObject({ draft: wrong, findings: [{ path: ["count"] }] });
    const broken: Draft = { as: "json", text: "{" };
    expect(draftAsFields(FIELD, broken)).toMatchObject({ draft: broken, findings: [{ path: [] }] });
  });

  it("numbers may have spaces and signs around them", () => {
    expect(formToJson(FIELD, typed({ count: { as: "text", text: " +7 " }, price: { as: "text", text: ".5" } })).value).toEqual({ count: 7, price: 0.5 });
  });
});

describe("what is needed", () => {
  const found = (value: unknown): string[] => allFindings(FIELD, { value, findings: [] }).map(({ path }) => path.join("."));

  it("is said at each required field that is not there, also in rows", () => {
    expect(found({ count: 1, express: false, lines: [{ sku: "a" }, { n: 2 }], note: null, address: {} })).toEqual(["id", "lines.1.sku"]);
  });

  it("is not said of what is there or optional", () => {
    expect(found({ id: "", count: 1, express: false, lines: [], note: null, address: {} })).toEqual([]);
  });

  it("is not said of a field that cannot be read", () => {
    const read = formToJson(FIELD, { as: "frame", fields: { ...(newDraft(ORDER) as { fields: Record<string, Draft> }).fields, id: { as: "text", text: "o" }, count: { as: "text", text: "x" } }, rest: {} });
    expect(allFindings(FIELD, read)).toEqual([{ path: ["count"], message: expect.stringContaining("not a number") as string }]);
  });
});

describe("findings of the server", () => {
  it.each([
    ["/lines/0/sku", ["lines", 0, "sku"]],
    ["/a~1b/c~0d", ["a/b", "c~d"]],
    ["lines[0].sku", ["lines", 0, "sku"]],
    ["$.lines.0", ["lines", 0]],
    [["lines", 0], ["lines", 0]],
    ["", []], ["$", []], [undefined, []],
  ])("%j leads to %j", (path, parts) => expect(pathParts(path)).toEqual(parts));

  it("land at their fields, and at the frame if there is no such field", () => {
    const found = formFindings([{ path: "/input/lines/0/sku", message: "too short" }, { path: "/input/other", message: "unknown" }, { path: "/id", message: "taken" }, "text"], "input");
    expect(found).toEqual([{ path: ["lines", 0, "sku"], message: "too short" }, { path: ["other"], message: "unknown" }]);
    expect(findingsBelow(found, "lines")).toEqual([{ path: [0, "sku"], message: "too short" }]);
    expect(findingsHere(found, ["lines"])).toEqual(["other: unknown"]);
  });
});
