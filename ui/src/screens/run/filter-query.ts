/** The filter of a run as a query to the server, for lists of places and events. Pure. */
import { parseFilter } from "./filter";

const MARKS = ["idle", "done", "working", "waiting", "queued", "failed", "skipped"] as const;
type PlaceMark = (typeof MARKS)[number];
export type FilterQuery = { q?: string; mark?: PlaceMark[]; kind?: string[] };

/** Return what the server is asked for. Boxes are not part of it. */
export function filterQuery(q: string): FilterQuery {
  const { texts, states, kinds } = parseFilter(q);
  const marks = MARKS.filter((mark) => states.includes(mark));
  return { ...(texts.length ? { q: texts.join(" ") } : {}), ...(marks.length ? { mark: marks } : {}), ...(kinds.length ? { kind: kinds } : {}) };
}

/** Whether a box is one of those that the filter names; any box is if it names none. */
export function isNamed(q: string, box: string): boolean {
  const names = parseFilter(q).boxes;
  return names.length === 0 || names.some((name) => box.toLowerCase() === name || box.toLowerCase().endsWith("/" + name));
}
