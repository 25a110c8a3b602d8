/** Short notices, spoken politely and at most once in five seconds; a failure of one's own act is spoken at once. */
import { useSyncExternalStore, type ReactElement } from "react";

type Notices = { polite: string; urgent: string; toast: string };

const EVERY_MS = 5000;
const TOAST_MS = 3000;
let current: Notices = { polite: "", urgent: "", toast: "" };
let waiting: string[] = [];
let spokenAt = -EVERY_MS;
let timer: ReturnType<typeof setTimeout> | undefined;
let toastTimer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function change(changes: Partial<Notices>): void {
  current = { ...current, ...changes };
  for (const listener of listeners) listener();
}

/** Say some news. What comes within five seconds is gathered. */
export function sayPolitely(text: string): void {
  waiting.push(text);
  if (timer !== undefined) return;
  const wait = Math.max(0, spokenAt + EVERY_MS - performance.now());
  timer = setTimeout(() => {
    timer = undefined;
    spokenAt = performance.now();
    change({ polite: [...new Set(waiting)].join(", ") });
    waiting = [];
  }, wait);
}

/** Say that what the person just did has failed. */
export function sayUrgently(text: string): void {
  change({ urgent: text });
}

/** Show a short confirmation. */
export function toast(text: string): void {
  clearTimeout(toastTimer);
  change({ toast: text, polite: text });
  toastTimer = setTimeout(() => change({ toast: "" }), TOAST_MS);
}

export function copyText(text: string): void {
  const failed = (): void => toast("The browser did not allow copying");
  // Browsers have no clipboard over plain HTTP, except on this machine.
  if (navigator.clipboard === undefined) failed();
  else navigator.clipboard.writeText(text).then(() => toast("Copied"), failed);
}

export function Notices(): ReactElement {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
  return (
    <>
      <div className="unseen" role="status" aria-live="polite">{shown.polite}</div>
      <div className="unseen" role="alert">{shown.urgent}</div>
      {shown.toast && <div className="toast" aria-hidden="true">{shown.toast}</div>}
    </>
  );
}
