/** The bars of a row of the timeline: spans of the server, in pixels, merged where they would touch. Pure. */
import type { Span, TimelineRow } from "../api/schema";
import { xOf, type Scale } from "./timeline-scale";

export type Look = "queued" | "working" | "done" | "failed" | "skipped" | "retry" | "patient";
export type Bar = { x: number; width: number; look: Look; number: number };
export type RowBars = { bars: Bar[]; crosses: number[] };

const WIDTH_MIN = 2;
const ALIKE_PX = 8;
export const BARS_MAX = 400;

/** Return the bars of a row, at most `max` of them, and the pixels at which attempts failed. */
export function barsOf(row: TimelineRow, scale: Scale, now: number, max: number): RowBars {
  const spans = row.spans ?? [];
  const ends = new Map(spans.filter(isEnd).map((span) => [span.number, span.mark]));
  const lasting = new Set(spans.filter((span) => !isEnd(span)).map((span) => span.number));
  const bars: Bar[] = [];
  const crosses: number[] = [];
  for (const span of spans) {
    const until = span.until ?? Math.max(now, span.since);
    if (until < scale.view.since || span.since > scale.view.until) continue;
    if (isEnd(span) && lasting.has(span.number)) continue;
    const [left, right] = [clip(scale, span.since), clip(scale, until)];
    if (span.retries && until <= scale.view.until) crosses.push(right);
    bars.push({ x: Math.min(left, scale.width - WIDTH_MIN), width: Math.max(WIDTH_MIN, right - left), look: lookOf(span, ends.get(span.number)), number: span.number });
  }
  return { bars: merged(bars, Math.max(1, max)), crosses: apart(crosses) };
}

/** Whether a span only says how its place ended. */
function isEnd(span: Span): boolean {
  return span.until === span.since && span.mark !== "working" && span.mark !== "waiting" && span.mark !== "queued";
}

function clip(scale: Scale, ms: number): number {
  return Math.min(scale.width, Math.max(0, xOf(scale, ms)));
}

/** A bar of work has the colour of how its place ended. */
function lookOf(span: Span, end: Span["mark"] | undefined): Look {
  switch (span.mark) {
    case "queued": return "queued";
    case "waiting": return span.wait === "retry" ? "retry" : "patient";
    case "working": return end === "done" || end === "failed" || end === "skipped" ? end : "working";
    case "done": return "done";
    case "failed": return "failed";
    case "idle":
    case "skipped": return "skipped";
    default: return span.mark satisfies never;
  }
}

/** Merge bars until at most `max` are left: first those that look alike and touch, then ones that lie ever farther apart. */
export function merged(bars: Bar[], max: number): Bar[] {
  let found = [...bars].sort((a, b) => a.x - b.x);
  if (found.length <= max) return found;
  for (let space = 0.5; found.length > max && space < 1e5; space *= 2) found = joined(found, space, space > ALIKE_PX);
  return found;
}

/** Join neighbours with at most `space` pixels between them; `isAny` also those that look different. */
function joined(bars: Bar[], space: number, isAny: boolean): Bar[] {
  const found: Bar[] = [];
  for (const bar of bars) {
    const last = found.at(-1);
    if (last && bar.x <= last.x + last.width + space && (isAny || last.look === bar.look)) {
      last.width = Math.max(last.width, bar.x + bar.width - last.x);
    } else {
      found.push({ ...bar });
    }
  }
  return found;
}

function apart(crosses: number[]): number[] {
  const found: number[] = [];
  for (const x of crosses.sort((a, b) => a - b)) if (found.length === 0 || x - found.at(-1)! >= 6) found.push(x);
  return found;
}

/** Return the outline of how many worked at once as a path. `edges` are the pixels between the columns. */
export function countsPath(counts: number[], edges: number[], height: number): string {
  const most = Math.max(1, ...counts);
  let path = "";
  counts.forEach((count, at) => {
    const before = counts[at - 1] ?? 0;
    if (count === before) return;
    const x = round(edges[at]!);
    const y = round(height - (count / most) * (height - 2));
    if (before === 0) path += `M${x} ${height}V${y}`;
    else path += count === 0 ? `H${x}V${height}Z` : `H${x}V${y}`;
  });
  return counts.at(-1) ? `${path}H${round(edges[counts.length]!)}V${height}Z` : path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
