/** Starts by hour, ready to be drawn. Pure. */
import type { Count } from "./counts";

export type Hour = Count & { at: number };

export const HOUR_MS = 3_600_000;

/** Return the first and last hour of a selection that was begun at one and ended at another. */
export function selected(a: number, b: number): [number, number] {
  return a <= b ? [a, b] : [b, a];
}

/** Return "24 h" or "3 d": how long the chart goes back. */
export function lengthText(hours: number): string {
  return hours > 24 && hours % 24 === 0 ? `${hours / 24} d` : `${hours} h`;
}
