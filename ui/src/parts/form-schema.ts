/** From a JSON Schema to the fields of a form. What has no field of its own becomes a JSON field. Pure. */

export type Schema = Record<string, unknown>;
export type Option = { value: unknown; label: string };

export type Common = {
  title: string;
  help: string;
  isRequired: boolean;
  mayBeNull: boolean;
  /** What is filled in at the beginning; undefined if nothing is. */
  filled: unknown;
  schema: unknown;
};

export type Field = Common &
  (
    | { kind: "text"; isLong: boolean }
    | { kind: "number"; isInteger: boolean }
    | { kind: "check" }
    | { kind: "one"; options: Option[] }
    | { kind: "moment"; withTime: boolean }
    | { kind: "rows"; item: Field }
    | { kind: "frame"; fields: { name: string; field: Field }[] }
    | { kind: "json" }
  );

const LEVELS_MAX = 3;
const LONG_TEXT = 120;
const REFERENCES_MAX = 20;
const NOT_FOR_FIELDS = ["if", "then", "else", "not", "dependentSchemas", "prefixItems", "$dynamicRef", "patternProperties", "propertyNames"];

type Place = { root: Schema; level: number; isInRow: boolean };
type Named = { name: string; isRequired: boolean };

/** Return the fields of a schema. Never throws: a schema that is not one gives a JSON field. */
export function schemaForm(schema: unknown): Field {
  const root = isSchema(schema) ? schema : {};
  return fieldOf(schema, { name: "", isRequired: true }, { root, level: 1, isInRow: false });
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldOf(written: unknown, { name, isRequired }: Named, place: Place): Field {
  const { schema, mayBeNull } = resolved(written, place.root);
  const found = schema ?? {};
  const common: Common = {
    title: textIn(found, "title") || name,
    help: textIn(found, "description"),
    isRequired,
    mayBeNull,
    filled: "default" in found ? found["default"] : "const" in found && isRequired ? found["const"] : undefined,
    schema: written,
  };
  const json: Field = { ...common, kind: "json" };
  if (schema === null || NOT_FOR_FIELDS.some((word) => word in schema)) return json;
  const options = optionsOf(schema);
  if (options !== null) return { ...common, kind: "one", options };
  if ("anyOf" in schema || "oneOf" in schema || "allOf" in schema) return json;
  return typedField(schema, common, place) ?? json;
}

function typedField(schema: Schema, common: Common, place: Place): Field | null {
  switch (schema["type"]) {
    case "string": return stringField(schema, common);
    case "integer": return { ...common, kind: "number", isInteger: true };
    case "number": return { ...common, kind: "number", isInteger: false };
    case "boolean": {
      if (!common.mayBeNull) return { ...common, kind: "check" };
      return { ...common, kind: "one", options: [{ value: true, label: "yes" }, { value: false, label: "no" }] };
    }
    case "array": {
      if (place.isInRow || !isSchema(schema["items"])) return null;
      return { ...common, kind: "rows", item: fieldOf(schema["items"], { name: "", isRequired: true }, { ...place, isInRow: true }) };
    }
    case "object": return objectField(schema, common, place);
    default: return null;
  }
}

function stringField(schema: Schema, common: Common): Field {
  const format = schema["format"];
  if (format === "date-time" || format === "date") return { ...common, kind: "moment", withTime: format === "date-time" };
  const longest = schema["maxLength"];
  return { ...common, kind: "text", isLong: typeof longest === "number" && longest > LONG_TEXT };
}

function objectField(schema: Schema, common: Common, place: Place): Field | null {
  const properties = schema["properties"];
  if (!isSchema(properties) || Object.keys(properties).length === 0 || place.level > LEVELS_MAX) return null;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const below: Place = { root: place.root, level: place.level + 1, isInRow: false };
  const fields = Object.entries(properties).map(([name, one]) => ({
    name, field: fieldOf(one, { name, isRequired: required.includes(name) }, below),
  }));
  return { ...common, kind: "frame", fields };
}

/** Return the options of a schema that lists its values, or null. */
function optionsOf(schema: Schema): Option[] | null {
  if ("const" in schema) return [{ value: schema["const"], label: labelOf(schema["const"]) }];
  const listed = schema["enum"];
  if (Array.isArray(listed) && listed.length > 0) return listed.map((value: unknown) => ({ value, label: labelOf(value) }));
  const branches = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(branches) || branches.length === 0) return null;
  const each = branches.map((branch: unknown) => (isSchema(branch) && "const" in branch ? branch : null));
  if (each.includes(null)) return null;
  return each.map((branch) => ({ value: branch!["const"], label: textIn(branch!, "title") || labelOf(branch!["const"]) }));
}

function labelOf(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

/** Follow references, and take null apart from what else is possible. The schema is null if it cannot be followed. */
function resolved(written: unknown, root: Schema): { schema: Schema | null; mayBeNull: boolean } {
  let schema = written;
  let mayBeNull = false;
  for (let step = 0; step < REFERENCES_MAX; step++) {
    if (!isSchema(schema)) return { schema: null, mayBeNull };
    const next: Schema | null = followed(schema, root) ?? unwrapped(schema);
    if (next !== null) {
      schema = next;
      continue;
    }
    const rest = withoutNull(schema);
    if (rest === null) return { schema: "$ref" in schema ? null : schema, mayBeNull };
    mayBeNull = true;
    schema = rest;
  }
  return { schema: null, mayBeNull };
}

/** Return what a reference within the document refers to, with the words beside the reference. */
function followed(schema: Schema, root: Schema): Schema | null {
  const { $ref: reference, ...beside } = schema;
  if (typeof reference !== "string" || !reference.startsWith("#")) return null;
  let found: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = unescaped(part);
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return null;
    found = (found as Schema)[name];
  }
  return isSchema(found) ? { ...found, ...beside } : null;
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}

/** `allOf` with one schema is that schema. */
function unwrapped(schema: Schema): Schema | null {
  const { allOf: all, ...beside } = schema;
  return Array.isArray(all) && all.length === 1 && isSchema(all[0]) ? { ...all[0], ...beside } : null;
}

/** Return the schema without null if null is one of two or more things that it allows; else null. */
function withoutNull(schema: Schema): Schema | null {
  const { type, enum: listed, ...beside } = schema;
  if (Array.isArray(type) && type.includes("null")) {
    const types = type.filter((one) => one !== "null");
    const values = Array.isArray(listed) ? { enum: listed.filter((one) => one !== null) } : {};
    return types.length === 0 ? null : { ...beside, ...values, type: types.length === 1 ? types[0] : types };
  }
  if (Array.isArray(listed) && listed.length > 1 && listed.includes(null)) {
    return { ...schema, enum: listed.filter((one) => one !== null) };
  }
  for (const word of ["anyOf", "oneOf"]) {
    const branches = schema[word];
    if (!Array.isArray(branches)) continue;
    const rest: unknown[] = branches.filter((one) => !(isSchema(one) && one["type"] === "null"));
    if (rest.length === branches.length || rest.length === 0) continue;
    if (rest.length > 1 || !isSchema(rest[0])) return { ...schema, [word]: rest };
    return { ...rest[0], ...Object.fromEntries(Object.entries(schema).filter(([name]) => name !== word)) };
  }
  return null;
}

function textIn(schema: Schema, word: string): string {
  const found = schema[word];
  return typeof found === "string" ? found : "";
}
