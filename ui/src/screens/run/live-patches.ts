/** What live frames change in what is shown. Pure. */
import type { ChangedRun, ChangedStanding, RunDetail, StandingView } from "../../api/schema";

/** Return the standing after some boxes and arrows have changed. */
export function withChanges(before: StandingView | undefined, change: ChangedStanding): StandingView {
  const gone = new Set(change.removed);
  const boxes = Object.fromEntries(Object.entries({ ...before?.boxes, ...change.boxes }).filter(([box]) => !gone.has(box)));
  return { seq: change.seq, at: change.at, status: change.status, boxes, arrows: { ...before?.arrows, ...change.arrows } };
}

/** Return the run after its state has changed. */
export function withNews(before: RunDetail, news: ChangedRun): RunDetail {
  return { ...before, ...news };
}

/** Say what happened to the boxes, for people who hear the screen: "1 step done, 1 failed". */
export function newsText(before: StandingView | undefined, after: StandingView): string {
  if (before === undefined) return "";
  const count = (standing: StandingView, name: "done" | "failed"): number => Object.values(standing.boxes).reduce((sum, box) => sum + (box[name] ?? 0), 0);
  const parts = (["done", "failed"] as const).map((name) => ({ name, more: count(after, name) - count(before, name) })).filter(({ more }) => more > 0);
  return parts.map(({ name, more }) => `${more} ${name}`).join(", ");
}
