/** The filter of a list of runs: as the address holds it, and as the server is asked. Pure. */
import type { operations } from "../../api/schema";
import { STATUSES, type RunStatus } from "../../shell/words";

export type RunFilter = {
  status: RunStatus[];
  workflow: string;
  version: string;
  style: string;
  since: string;
  until: string;
  /** `name=value`, as the server reads it: the value is JSON if it can be read as JSON. */
  where: string[];
  parent: string;
  waits: string;
  /** How long nothing has changed: "1h". */
  unchanged: string;
  /** The beginning of an id or of a workflow's name. */
  q: string;
};

/** Something in the address or in typed text that cannot be used, and why. */
export type FilterFinding = { what: string; why: string };
export type ReadFilter = { filter: RunFilter; findings: FilterFinding[] };
export type SingleKey = Exclude<keyof RunFilter, "status" | "where">;

export const NO_FILTER: RunFilter = { status: [], workflow: "", version: "", style: "", since: "", until: "", where: [], parent: "", waits: "", unchanged: "", q: "" };
export const SINGLE_KEYS: readonly SingleKey[] = ["workflow", "version", "style", "since", "until", "parent", "waits", "unchanged", "q"];
export const STYLES = ["code", "graph", "goal"] as const;
export const WAITS = ["person", "message", "time", "step", "child"] as const;

const UNITS: Record<string, number> = { s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const TIMES = "write 24h, 7d or 2026-01-31";

/** Return the milliseconds of "24h", or null. */
export function spanMs(text: string): number | null {
  const found = /^(\d{1,6})\s*(s|min|m|h|d|w)$/.exec(text);
  return found ? Number(found[1]) * UNITS[found[2]!]! : null;
}

/** Return the moment of "24h" (so long ago), or of a date or time, in milliseconds; null if it is neither. */
export function momentMs(text: string, nowMs: number): number | null {
  const span = spanMs(text);
  if (span !== null) return nowMs - span;
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** Return why a value cannot be used; null if it can. */
export function whyNot(key: keyof RunFilter, value: string): string | null {
  switch (key) {
    case "status": return (STATUSES as string[]).includes(value) ? null : `there is no such status; there are ${STATUSES.join(", ")}`;
    case "style": return (STYLES as readonly string[]).includes(value) ? null : `there is no such style; there are ${STYLES.join(", ")}`;
    case "waits": return (WAITS as readonly string[]).includes(value) ? null : `runs wait for ${WAITS.join(", ")}`;
    case "since":
    case "until": return momentMs(value, 0) === null ? `this is not a time: ${TIMES}` : null;
    case "unchanged": return spanMs(value) === null ? "this is not a duration: write 30m, 1h or 2d" : null;
    case "where": return value.indexOf("=") > 0 ? null : "write name=value";
    case "workflow":
    case "version":
    case "parent":
    case "q": return null;
    default: return key satisfies never;
  }
}

/** Return the filter with one more value, or with what is wrong with it. */
export function added(read: ReadFilter, key: keyof RunFilter, value: string): ReadFilter {
  const why = whyNot(key, value);
  const { filter, findings } = read;
  if (why !== null) return { filter, findings: [...findings, { what: `${key}:${value}`, why }] };
  if (key === "status") return filter.status.includes(value as RunStatus) ? read : { ...read, filter: { ...filter, status: [...filter.status, value as RunStatus] } };
  if (key === "where") return filter.where.includes(value) ? read : { ...read, filter: { ...filter, where: [...filter.where, value] } };
  if (filter[key] !== "" && filter[key] !== value) {
    const why = `there can be only one ${key === "q" ? "beginning of an id" : key}; put spaces in quotes`;
    return { filter, findings: [...findings, { what: value, why }] };
  }
  return { ...read, filter: { ...filter, [key]: value } };
}

/** Read the filter of an address. Unknown parameters are ignored, bad ones named. */
export function readAddress(chosen: URLSearchParams): ReadFilter {
  let read: ReadFilter = { filter: NO_FILTER, findings: [] };
  for (const text of chosen.getAll("status")) for (const one of text.split(",").filter(Boolean)) read = added(read, "status", one);
  for (const one of chosen.getAll("where")) read = added(read, "where", one);
  for (const key of SINGLE_KEYS) {
    const value = chosen.get(key);
    if (value) read = added(read, key, value);
  }
  return read;
}

/** Return the parameters of the address that hold a filter. */
export function addressOf(filter: RunFilter): Record<keyof RunFilter, string | string[]> {
  return { ...filter };
}

export function isEmpty(filter: RunFilter): boolean {
  return filter.status.length === 0 && filter.where.length === 0 && SINGLE_KEYS.every((key) => filter[key] === "");
}

export function isSameFilter(a: RunFilter, b: RunFilter): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export type Asked = Omit<NonNullable<operations["listRuns"]["parameters"]["query"]>, "limit" | "cursor">;

/** Return what the server is asked for. Spans end now, by the server's clock. */
export function askedOf(filter: RunFilter, nowMs: number): Asked {
  const asked: Asked = {};
  if (filter.status.length > 0) asked.status = filter.status;
  if (filter.where.length > 0) asked.where = filter.where;
  for (const key of ["workflow", "version", "parent", "q"] as const) if (filter[key]) asked[key] = filter[key];
  for (const key of ["since", "until"] as const) if (filter[key]) asked[key] = new Date(momentMs(filter[key], nowMs)!).toISOString();
  if (filter.style) asked.style = filter.style as (typeof STYLES)[number];
  if (filter.waits) asked.waits = [filter.waits as (typeof WAITS)[number]];
  if (filter.unchanged) asked.unchanged = `${spanMs(filter.unchanged)! / 1000}s`;
  return asked;
}
