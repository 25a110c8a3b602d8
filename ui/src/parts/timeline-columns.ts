/** The columns in which the server counts: they cover the window that was asked for, without its gaps. Pure. */
import type { Gap } from "./timeline-scale";

export type CountedWindow = { since: number; until: number; gaps: Gap[] };

/** Return the moments between the columns, one more than there are columns. */
export function columnEdges(counted: CountedWindow, columns: number): number[] {
  const gaps = counted.gaps.map((gap) => ({ since: Math.max(gap.since, counted.since), until: Math.min(gap.until, counted.until) }))
    .filter((gap) => gap.until > gap.since);
  const active = counted.until - counted.since - gaps.reduce((sum, gap) => sum + gap.until - gap.since, 0);
  const edges: number[] = [];
  let [passed, next] = [0, 0];
  for (let column = 0; column <= columns; column++) {
    const wanted = counted.since + (active * column) / columns;
    while (next < gaps.length && wanted + passed > gaps[next]!.since) {
      passed += gaps[next]!.until - gaps[next]!.since;
      next++;
    }
    edges.push(wanted + passed);
  }
  return edges;
}
