/** What is typed into a form, and the JSON that it stands for. Neither way loses anything. Pure. */
import { schemaForm, type Field } from "./form-schema";

/** What a field holds while it is filled in. It is plain JSON itself, so that a draft can be kept. */
export type Draft =
  | { as: "absent" }
  | { as: "null" }
  | { as: "text"; text: string }
  | { as: "check"; isOn: boolean }
  | { as: "one"; at: number }
  | { as: "rows"; items: Draft[] }
  | { as: "frame"; fields: Record<string, Draft>; rest: Record<string, unknown> }
  /** A value that its field cannot show, or a field that is typed as JSON. */
  | { as: "json"; text: string };

/** What is wrong with a field. The path leads to it through names and row numbers. */
export type FormFinding = { path: (string | number)[]; message: string };
export type FormValue = { value: unknown; findings: FormFinding[] };

/** Return the draft of a new form, with defaults filled in. */
export function newDraft(schema: unknown): Draft {
  return emptyDraft(schemaForm(schema));
}

/** Return the draft of one field before anything is typed. */
export function emptyDraft(field: Field): Draft {
  if (field.filled !== undefined) return jsonToForm(field, field.filled);
  return field.isRequired && !field.mayBeNull ? presentDraft(field) : clearedDraft(field);
}

/** Return the draft of a field that was emptied: null where it must be there and may be null, else left out. */
export function clearedDraft(field: Field): Draft {
  return field.isRequired && field.mayBeNull ? { as: "null" } : { as: "absent" };
}

/** Return the draft of a field that is there, though nothing is typed yet. */
export function presentDraft(field: Field): Draft {
  switch (field.kind) {
    case "text":
    case "number":
    case "moment":
    case "one":
    case "json": return { as: "absent" };
    case "check": return { as: "check", isOn: false };
    case "rows": return { as: "rows", items: [] };
    case "frame": return { as: "frame", fields: Object.fromEntries(field.fields.map((one) => [one.name, emptyDraft(one.field)])), rest: {} };
    default: return field satisfies never;
  }
}

/** Return the draft that shows a value. A value that does not fit its field is shown as JSON. */
export function jsonToForm(field: Field, value: unknown): Draft {
  if (value === undefined) return { as: "absent" };
  if (value === null && field.mayBeNull) return { as: "null" };
  return fitting(field, value) ?? { as: "json", text: JSON.stringify(value, null, 2) };
}

function fitting(field: Field, value: unknown): Draft | null {
  switch (field.kind) {
    case "text":
    case "moment": return typeof value === "string" ? { as: "text", text: value } : null;
    case "number": return typeof value === "number" && Number.isFinite(value) ? { as: "text", text: String(value) } : null;
    case "check": return typeof value === "boolean" ? { as: "check", isOn: value } : null;
    case "one": {
      const at = field.options.findIndex((option) => isSame(option.value, value));
      return at < 0 ? null : { as: "one", at };
    }
    case "rows": return Array.isArray(value) ? { as: "rows", items: value.map((item: unknown) => jsonToForm(field.item, item)) } : null;
    case "frame": return isRecord(value) ? frameDraft(field.fields, value) : null;
    case "json": return null;
    default: return field satisfies never;
  }
}

function frameDraft(fields: { name: string; field: Field }[], value: Record<string, unknown>): Draft {
  const found = fields.map(({ name, field }) => [name, jsonToForm(field, Object.hasOwn(value, name) ? value[name] : undefined)] as const);
  const names = new Set(fields.map(({ name }) => name));
  const rest = Object.entries(value).filter(([name]) => !names.has(name));
  return { as: "frame", fields: Object.fromEntries(found), rest: Object.fromEntries(rest) };
}

/** Return the value that a draft stands for, and where it cannot be read. */
export function formToJson(field: Field, draft: Draft): FormValue {
  const findings: FormFinding[] = [];
  return { value: valueOf(field, draft, { path: [], findings }), findings };
}

/** Return what is wrong with what was read, and the required fields that are not there. */
export function allFindings(field: Field, { value, findings }: FormValue): FormFinding[] {
  const known = new Set(findings.map(({ path }) => JSON.stringify(path)));
  return [...findings, ...absentIn(field, value, []).filter(({ path }) => !known.has(JSON.stringify(path)))];
}

function absentIn(field: Field, value: unknown, path: (string | number)[]): FormFinding[] {
  if (field.kind === "rows" && Array.isArray(value)) return value.flatMap((item, at) => absentIn(field.item, item, [...path, at]));
  if (field.kind !== "frame" || !isRecord(value)) return [];
  return field.fields.flatMap(({ name, field: inner }) => {
    if (Object.hasOwn(value, name)) return absentIn(inner, value[name], [...path, name]);
    return inner.isRequired ? [{ path: [...path, name], message: "This is needed." }] : [];
  });
}

type Reading = { path: (string | number)[]; findings: FormFinding[] };

function valueOf(field: Field, draft: Draft, reading: Reading): unknown {
  switch (draft.as) {
    case "absent": return undefined;
    case "null": return null;
    case "check": return draft.isOn;
    case "json": return readJson(draft.text, reading);
    case "text": return field.kind === "number" ? readNumber(draft.text, field.isInteger, reading) : draft.text;
    case "one": return field.kind === "one" ? field.options[draft.at]?.value : undefined;
    case "rows": return field.kind === "rows" ? draft.items.map((item, at) => rowValue(field.item, item, below(reading, at))) : undefined;
    case "frame": return frameValue(field, draft, reading);
    default: return draft satisfies never;
  }
}

/** A row is always there: an empty one is an empty text, or null for the server to refuse. */
function rowValue(field: Field, draft: Draft, reading: Reading): unknown {
  const value = valueOf(field, draft, reading);
  return value === undefined ? (field.kind === "text" ? "" : null) : value;
}

function frameValue(field: Field, draft: Draft & { as: "frame" }, reading: Reading): unknown {
  const found: [string, unknown][] = [];
  for (const { name, field: inner } of field.kind === "frame" ? field.fields : []) {
    const value = valueOf(inner, draftAt(draft, name), below(reading, name));
    if (value !== undefined) found.push([name, value]);
  }
  return Object.fromEntries([...found, ...Object.entries(draft.rest)]);
}

/** Return the draft of a field in a frame. */
export function draftAt(draft: Draft & { as: "frame" }, name: string): Draft {
  return Object.hasOwn(draft.fields, name) ? draft.fields[name]! : { as: "absent" };
}

function below(reading: Reading, part: string | number): Reading {
  return { path: [...reading.path, part], findings: reading.findings };
}

function readNumber(text: string, isInteger: boolean, reading: Reading): unknown {
  const typed = text.trim();
  const say = (message: string): undefined => void reading.findings.push({ path: reading.path, message });
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(typed)) return say("This is not a number.");
  const value = Number(typed);
  if (!Number.isFinite(value)) return say("This number is too large.");
  if (isInteger && !Number.isInteger(value)) return say("This must be a whole number.");
  if (isChanged(typed, value)) return say("A browser cannot send this number exactly. Use the terminal.");
  return value;
}

/** Whether a whole number is another one after it was read: beyond 2^53 not all of them can be held. */
function isChanged(typed: string, value: number): boolean {
  return /^[-+]?\d+$/.test(typed) && BigInt(typed.replace("+", "")) !== BigInt(value);
}

function readJson(text: string, reading: Reading): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    reading.findings.push({ path: reading.path, message: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}

/** Read JSON. Throws an Error that says what is wrong; a number that would change by being read is wrong, too. */
export function parseJson(text: string): unknown {
  if (text.trim() === "") throw new Error("Nothing is typed yet. An empty text is \"\".");
  const check = (_: string, value: unknown, context?: { source?: string }): unknown => {
    if (typeof value === "number" && context?.source !== undefined && isChanged(context.source, value)) {
      throw new RangeError(`A browser cannot send ${context.source} exactly. Use the terminal.`);
    }
    return value;
  };
  try {
    return JSON.parse(text, check as (key: string, value: unknown) => unknown);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Return the whole form typed as JSON, or what must be mended before. */
export function draftAsJson(field: Field, draft: Draft): { draft: Draft; findings: FormFinding[] } {
  const { value, findings } = formToJson(field, draft);
  if (findings.length > 0) return { draft, findings };
  return { draft: { as: "json", text: value === undefined ? "" : JSON.stringify(value, null, 2) }, findings };
}

/** Return the fields of a form that was typed as JSON, or why it cannot be read. */
export function draftAsFields(field: Field, draft: Draft): { draft: Draft; findings: FormFinding[] } {
  if (draft.as !== "json") return { draft, findings: [] };
  if (draft.text.trim() === "") return { draft: emptyDraft(field), findings: [] };
  const { value, findings } = formToJson(field, draft);
  return { draft: findings.length > 0 ? draft : jsonToForm(field, value), findings };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two JSON values are equal. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, at) => isSame(one, b[at]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]));
}
