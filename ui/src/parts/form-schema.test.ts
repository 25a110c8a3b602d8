import { describe, expect, it } from "vitest";

import { schemaForm, type Field } from "./form-schema";

const kindOf = (schema: unknown): string => schemaForm(schema).kind;
const inner = (field: Field, name: string): Field => {
  if (field.kind !== "frame") throw new Error("not a frame");
  return field.fields.find((one) => one.name === name)!.field;
};

describe("the kind of a field", () => {
  it.each([
    [{ type: "string" }, "text"],
    [{ type: "integer" }, "number"],
    [{ type: "number" }, "number"],
    [{ type: "boolean" }, "check"],
    [{ enum: ["a", "b"] }, "one"],
    [{ const: 3 }, "one"],
    [{ oneOf: [{ const: "a", title: "A" }, { const: "b" }] }, "one"],
    [{ type: "string", format: "date-time" }, "moment"],
    [{ type: "string", format: "date" }, "moment"],
    [{ type: "array", items: { type: "string" } }, "rows"],
    [{ type: "object", properties: { a: {} } }, "frame"],
  ])("%j is %s", (schema, kind) => expect(kindOf(schema)).toBe(kind));

  it.each([
    undefined, null, true, 7, "text", [], {}, { type: "unheard" }, { type: ["string", "integer"] }, { type: "object" },
    { anyOf: [{ type: "string" }, { type: "integer" }] }, { allOf: [{ type: "string" }, { maxLength: 3 }] },
    { $ref: "other.json" }, { $ref: "#/nowhere" }, { $ref: "#" }, { type: "array" }, { type: "array", items: true },
    { type: "array", items: { type: "string" }, prefixItems: [] }, { type: "string", not: { const: "x" } },
    { type: "object", properties: { a: {} }, if: {} }, { anyOf: "x" }, { enum: [] }, { allOf: [3] }, { type: "object", properties: [] },
  ])("anything else is JSON, never a crash: %j", (schema) => expect(kindOf(schema)).toBe("json"));

  it("is a long text above 120 characters", () => {
    expect(schemaForm({ type: "string", maxLength: 120 })).toMatchObject({ isLong: false });
    expect(schemaForm({ type: "string", maxLength: 121 })).toMatchObject({ isLong: true });
  });

  it("takes its label, help and default from the schema", () => {
    const field = schemaForm({ type: "object", properties: { a: { type: "string", title: "Name", description: "of the customer", default: "x" }, b: { type: "string" } } });
    expect(inner(field, "a")).toMatchObject({ title: "Name", help: "of the customer", filled: "x" });
    expect(inner(field, "b")).toMatchObject({ title: "b", help: "" });
  });
});

describe("null", () => {
  it.each([
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "text"],
    [{ oneOf: [{ type: "null" }, { type: "integer" }] }, "number"],
    [{ type: ["string", "null"] }, "text"],
    [{ enum: ["a", null] }, "one"],
    [{ anyOf: [{ $ref: "#/$defs/n" }, { type: "null" }], $defs: { n: { type: "number" } } }, "number"],
    [{ anyOf: [{ enum: ["a", "b"] }, { type: "null" }], default: null }, "one"],
  ])("%j is optional %s", (schema, kind) => expect(schemaForm(schema)).toMatchObject({ kind, mayBeNull: true }));

  it("makes a check box a choice of yes, no and none", () => {
    const field = schemaForm({ type: ["boolean", "null"] });
    expect(field.kind === "one" && field.options.map(({ label }) => label)).toEqual(["yes", "no"]);
  });

  it("alone is a JSON field", () => expect(kindOf({ type: "null" })).toBe("json"));
});

describe("references", () => {
  it("are followed within the document, with the words beside them", () => {
    const field = schemaForm({ type: "object", properties: { a: { $ref: "#/$defs/Kind%20of~1it", description: "here" } }, $defs: { "Kind of/it": { type: "string", description: "there" } } });
    expect(inner(field, "a")).toMatchObject({ kind: "text", help: "here" });
  });

  it("through a single allOf are followed", () => {
    expect(kindOf({ allOf: [{ $ref: "#/$defs/a" }], $defs: { a: { type: "integer" } } })).toBe("number");
  });

  it("in a circle end in a JSON field", () => {
    expect(kindOf({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } })).toBe("json");
  });

  it("to themselves go three levels deep", () => {
    const schema = { type: "object", properties: { name: { type: "string" }, below: { $ref: "#" }, more: { type: "array", items: { $ref: "#" } } } };
    const third = inner(inner(schemaForm(schema), "below"), "below");
    expect(third.kind).toBe("frame");
    expect(inner(third, "below").kind).toBe("json");
    expect(inner(third, "more")).toMatchObject({ kind: "rows", item: { kind: "json" } });
  });
});

it("rows directly in rows are a JSON field", () => {
  expect(schemaForm({ type: "array", items: { type: "array", items: { type: "string" } } })).toMatchObject({ kind: "rows", item: { kind: "json" } });
});
