/** Whether the page hears from the server: live, catching up, or offline and when it tries again. */
import { useSyncExternalStore } from "react";

export type Connection = { state: "live" | "catching_up" | "offline"; retryAt: number | null };

const sources = new Map<string, Connection>();
const listeners = new Set<() => void>();
let worst: Connection = { state: "live", retryAt: null };
const RANK = { live: 0, catching_up: 1, offline: 2 } as const;

/** Report the state of one connection. Null forgets it. The frame shows the worst of all. */
export function reportConnection(source: string, state: Connection | null): void {
  if (state === null) sources.delete(source);
  else sources.set(source, state);
  let found: Connection = { state: "live", retryAt: null };
  for (const one of sources.values()) if (RANK[one.state] >= RANK[found.state]) found = one;
  if (found.state === worst.state && found.retryAt === worst.retryAt) return;
  worst = found;
  for (const listener of listeners) listener();
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => worst,
  );
}
