/** The server's time. All ages are computed with it, so a browser's clock that is off shows no wrong ages. */
import { useEffect, useState, useSyncExternalStore } from "react";

let offsetMs = 0;
let precisionMs = Infinity;
const listeners = new Set<() => void>();

/** Note the server's time from an answer that has just arrived. A more precise reading replaces a coarser one. */
export function noteServerTime(serverMs: number, precision: number): void {
  if (!Number.isFinite(serverMs) || precision > precisionMs) return;
  const found = serverMs - Date.now();
  const isFirst = precisionMs === Infinity;
  precisionMs = precision;
  if (!isFirst && Math.abs(found - offsetMs) < precision) return;
  offsetMs = found;
  for (const listener of listeners) listener();
}

export function serverNow(): number {
  return Date.now() + offsetMs;
}

/** By how much this browser's clock is off, in milliseconds; positive if it is slow. */
export function useClockOffset(): number {
  return useSyncExternalStore(listen, () => offsetMs);
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return the server's time, again every so often. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
