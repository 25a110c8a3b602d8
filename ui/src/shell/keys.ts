/** Keys. A screen adds its bindings while it is shown; none of them acts while somebody types. */
import { useLayoutEffect, useRef } from "react";

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
  // A screen that is in sight has its keys: an effect that waits for the paint would miss the first one.
  useLayoutEffect(() => {
    kept.current.bindings = bindings;
  });
  useLayoutEffect(() => {
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
  // The second key of a sequence belongs to it, whatever it means where the focus is.
  window.addEventListener("keydown", onSecondKey, true);
  window.addEventListener("keydown", onKey);
}

function onSecondKey(event: KeyboardEvent): void {
  const first = begun;
  if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  begun = "";
  if (first === "" || event.timeStamp - begunAt >= SEQUENCE_MS || isResting(event)) return;
  if (act(`${first} ${nameOf(event)}`, event)) event.stopPropagation();
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || isResting(event)) return;
  const key = nameOf(event);
  if ((key === "Space" || key === "Enter") && isPressable(event.target)) return;
  if (act(key, event)) return;
  if (isSingle(event) && scopes.some(({ bindings }) => bindings.some((one) => one.keys.startsWith(key + " ")))) {
    begun = key;
    begunAt = event.timeStamp;
  }
}

/** Whether keys mean nothing now, or only text. */
function isResting(event: KeyboardEvent): boolean {
  if (event.isComposing || document.querySelector("dialog:modal") !== null) return true; // the page behind a dialog rests
  if (isTyping(event.target) && event.key !== "Escape" && !event.ctrlKey && !event.metaKey) return true;
  return isSingle(event) && !settings().singleKeys;
}

function isSingle(event: KeyboardEvent): boolean {
  return !event.ctrlKey && !event.metaKey && !event.altKey && nameOf(event).length === 1;
}

/** Do what the innermost binding of these keys does. Returns whether there is one. */
function act(keys: string, event: KeyboardEvent): boolean {
  for (const { bindings } of scopes) {
    const found = bindings.find((one) => !one.isNative && one.keys === keys);
    if (found) {
      event.preventDefault();
      found.run(event);
      return true;
    }
  }
  return false;
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
