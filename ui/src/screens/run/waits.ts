/** Waits that say the same are one line. Pure. */
import type { Waiting } from "../../api/schema";

export type WaitGroup = { wait: Waiting; count: number };

/** Gather waits of one box that read alike; the one that began first stands for them. */
export function gatherWaits(waiting: readonly Waiting[]): WaitGroup[] {
  const groups = new Map<string, WaitGroup>();
  for (const wait of waiting) {
    const key = JSON.stringify([wait.kind, wait.box || wait.location, wait.what]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { wait, count: 1 });
    else groups.set(key, { wait: wait.since < known.wait.since ? wait : known.wait, count: known.count + 1 });
  }
  return [...groups.values()];
}
