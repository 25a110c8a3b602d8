/** The commands that were sent from this page. After each of them the panes go back to following what happens now. */
import { useSyncExternalStore } from "react";

let last = { run: "", count: 0 };
const listeners = new Set<() => void>();

/** Note that a command was sent to a run. */
export function noteSent(run: string): void {
  last = { run, count: last.count + 1 };
  for (const listener of listeners) listener();
}

/** Return a number that changes with every command to the run; 0 if the last command was not for it. */
export function useSent(run: string): number {
  return useSyncExternalStore(subscribe, () => sentTo(run));
}

export function sentTo(run: string): number {
  return last.run === run ? last.count : 0;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
