/** Signs and words of states. The signs are those of the pictures of `weft show`. */
import type { RunView } from "../api/schema";

export type RunStatus = RunView["status"];
export type Mark = "idle" | "done" | "working" | "waiting" | "queued" | "failed" | "skipped" | "held" | "undoing" | "cancelled" | "moved";

export const MARK_SIGNS: Record<Mark, string> = {
  idle: "○",
  done: "✓",
  working: "●",
  waiting: "◐",
  queued: "⋯",
  failed: "✗",
  skipped: "–",
  held: "‖",
  undoing: "↶",
  cancelled: "⊘",
  moved: "⇥",
};

export const STATUS_MARKS: Record<RunStatus, Mark> = {
  pending: "queued",
  running: "working",
  paused: "held",
  held: "held",
  cancelling: "undoing",
  rolling_back: "undoing",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
  moved: "moved",
  imported: "idle",
};

export const STATUSES: RunStatus[] = [
  "running", "pending", "paused", "held", "cancelling", "rolling_back", "failed", "completed", "cancelled", "moved", "imported",
];

export function statusWord(status: RunStatus): string {
  return status.replace("_", " ");
}

export function isOver(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "moved" || status === "imported";
}

/** `counted(2, "run")` is "2 runs". */
export function counted(count: number, one: string, many = one + "s"): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
