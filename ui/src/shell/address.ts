/** The address holds everything that is chosen. Reading and writing it is all that this module does. */
import { useMemo, useSyncExternalStore } from "react";

import { isOver, STATUSES } from "./words";

export type Route =
  | { screen: "home" }
  | { screen: "runs" }
  | { screen: "run"; id: string }
  | { screen: "diff"; id: string; other: string }
  | { screen: "inbox"; id: string | null }
  | { screen: "workflows" }
  | { screen: "workflow"; name: string }
  | { screen: "versions"; name: string; a: string; b: string }
  | { screen: "goals" }
  | { screen: "operations" }
  | { screen: "login" }
  | { screen: "unknown"; path: string };

/** Return the screen of a path below the base. Ids are percent-encoded in one segment. */
export function parseRoute(path: string): Route {
  const parts = path.split("/").filter(Boolean).map(decode);
  const [head, a, b, c, d] = parts;
  switch (head) {
    case undefined:
      return { screen: "home" };
    case "runs":
      if (a === undefined) return { screen: "runs" };
      if (b === undefined) return { screen: "run", id: a };
      if (b === "diff" && c !== undefined && d === undefined) return { screen: "diff", id: a, other: c };
      break;
    case "inbox":
      if (b === undefined) return { screen: "inbox", id: a ?? null };
      break;
    case "workflows":
      if (a === undefined) return { screen: "workflows" };
      if (b === undefined) return { screen: "workflow", name: a };
      if (b === "diff" && c !== undefined && d !== undefined) return { screen: "versions", name: a, a: c, b: d };
      break;
    case "goals":
    case "operations":
    case "login":
      if (a === undefined) return { screen: head };
      break;
  }
  return { screen: "unknown", path };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Build a path below the base: `pathTo("runs", id)`. */
export function pathTo(...parts: string[]): string {
  return "/" + parts.map(encodeURIComponent).join("/");
}

/** Return the address of the open runs of a workflow, or of one of its versions. */
export function openRunsPath(workflow: string, version = ""): string {
  return "/runs" + queryText({ workflow, version, status: STATUSES.filter((status) => !isOver(status)).join(",") });
}

export function runPath(id: string, chosen: Record<string, string | number | null | undefined> = {}): string {
  return pathTo("runs", id) + queryText(chosen);
}

/** Return `?a=1&b=2` of what is chosen; absent values are left out. */
export function queryText(chosen: Record<string, string | number | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(chosen)) {
    if (value !== null && value !== undefined && value !== "") query.append(name, String(value));
  }
  const text = query.toString();
  return text ? "?" + text : "";
}

type Choice = Record<string, string | number | readonly string[] | null | undefined>;

/** Return `a=1&b=2&b=3` of what is chosen, without a question mark. */
export function queryOf(chosen: Choice): string {
  return changed(new URLSearchParams(), chosen).toString();
}

function changed(query: URLSearchParams, changes: Choice): URLSearchParams {
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    if (typeof value === "object" && value !== null) for (const one of value) query.append(name, one);
    else if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return query;
}

/** The path of the base, without its last slash: "" or "/weft". */
export function basePath(): string {
  return new URL(".", document.baseURI).pathname.replace(/\/$/, "");
}

const CHANGED = "weft:address";

/** Go to a path below the base. */
export function navigate(to: string, how: { replace?: boolean } = {}): void {
  const url = basePath() + to;
  if (url === location.pathname + location.search + location.hash) return;
  if (how.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  window.dispatchEvent(new Event(CHANGED));
}

function subscribe(listener: () => void): () => void {
  const names = ["popstate", "hashchange", CHANGED];
  for (const name of names) window.addEventListener(name, listener);
  return () => {
    for (const name of names) window.removeEventListener(name, listener);
  };
}

function currentPath(): string {
  const base = basePath();
  const path = location.pathname;
  return path.startsWith(base) ? path.slice(base.length) || "/" : path;
}

export function useRoute(): Route {
  const path = useSyncExternalStore(subscribe, currentPath);
  return useMemo(() => parseRoute(path), [path]);
}

export function useHash(): string {
  return useSyncExternalStore(subscribe, () => location.hash.slice(1));
}

/** Return what is chosen in the address. */
export function useChosen(): URLSearchParams {
  const search = useSyncExternalStore(subscribe, () => location.search);
  return useMemo(() => new URLSearchParams(search), [search]);
}

/** Change what is chosen, and leave the rest of the address as it is. Null takes a choice out. */
export function choose(changes: Choice, how: { replace?: boolean } = {}): void {
  const text = changed(new URLSearchParams(location.search), changes).toString();
  navigate(currentPath() + (text ? "?" + text : "") + location.hash, how);
}
