/** Keys. A screen adds its bindings while it is shown; none of them acts while somebody types. */
import { useEffect, useRef } from "react";

import { settings } from "./settings";

/** `keys` is one key ("j", "Shift+[", "Ctrl+k") or a sequence ("g r"). What the browser does itself is only listed. */
export type Binding = { keys: string; does: string; run: (event: KeyboardEvent) => void; isHidden?: boolean; isNative?: boolean };

const scopes: { title: string; bindings: Binding[] }[] = [];
let begun = "";
let begunAt = 0;
const SEQUENCE_MS = 1500;

/** Use key bindings while the calling component is shown. The newest scope wins. */
export function useKeys(title: string, bindings: Binding[]): void {
  const kept = useRef({ title, bindings });
  useEffect(() => {
    kept.current.bindings = bindings;
  });
  useEffect(() => {
    const scope = kept.current;
    scopes.unshift(scope);
    return () => {
      scopes.splice(scopes.indexOf(scope), 1);
    };
  }, []);
}

/** Return all bindings for the help page, the innermost scope first. */
export function allBindings(): { title: string; bindings: Binding[] }[] {
  return scopes.map(({ title, bindings }) => ({ title, bindings: bindings.filter((one) => !one.isHidden) }));
}

export function startKeys(): void {
  window.addEventListener("keydown", onKey);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const key = nameOf(event);
  const isSingle = !event.ctrlKey && !event.metaKey && !event.altKey && key.length === 1;
  if (isTyping(event.target) && key !== "Escape" && !event.ctrlKey && !event.metaKey) return;
  if (isSingle && !settings().singleKeys) return;
  if ((key === "Space" || key === "Enter") && isPressable(event.target)) return;
  const sequence = event.timeStamp - begunAt < SEQUENCE_MS && begun ? `${begun} ${key}` : key;
  begun = "";
  for (const { bindings } of scopes) {
    const own = bindings.filter((one) => !one.isNative);
    const found = own.find((one) => one.keys === sequence) ?? own.find((one) => one.keys === key);
    if (found) {
      event.preventDefault();
      found.run(event);
      return;
    }
  }
  if (isSingle && scopes.some(({ bindings }) => bindings.some((one) => one.keys.startsWith(key + " ")))) {
    begun = key;
    begunAt = event.timeStamp;
  }
}

function nameOf(event: KeyboardEvent): string {
  const key = event.key === " " ? "Space" : event.key;
  const modifier = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  // Signs such as "?" already need Shift on most keyboards; brackets do not tell by themselves.
  if (event.code === "BracketLeft" || event.code === "BracketRight") {
    const sign = event.code === "BracketLeft" ? "[" : "]";
    if (key === sign || key === "{" || key === "}") return modifier + (event.shiftKey ? "Shift+" : "") + sign;
  }
  return modifier + (event.shiftKey && key.length > 1 ? "Shift+" : "") + key;
}

/** Whether a key press acts on the element itself: a button that has the focus is pressed, whatever the key means elsewhere. */
function isPressable(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("button, a[href], summary, [role=button], input[type=checkbox], input[type=radio]") !== null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "range", "button", "submit"].includes(target.type);
}
