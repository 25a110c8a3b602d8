/** Attributes as columns, remembered in this browser for each workflow filter. */
import { useState } from "react";

import type { ListedRun } from "../../api/schema";

const NAME = "weft.columns";
const COLUMNS_MAX = 6;

function load(): Record<string, string[]> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Record<string, string[]>) : {};
  } catch {
    return {};
  }
}

/** Return the columns for a workflow filter, and a function that changes them. */
export function useColumns(workflow: string): [string[], (columns: string[]) => void] {
  const [kept, setKept] = useState(load);
  const own = Object.hasOwn(kept, workflow) ? kept[workflow] : undefined;
  const columns = Array.isArray(own) ? own.filter((one) => typeof one === "string").slice(0, COLUMNS_MAX) : [];
  const change = (changed: string[]): void => {
    const all = { ...kept, [workflow]: changed.slice(0, COLUMNS_MAX) };
    setKept(all);
    try {
      localStorage.setItem(NAME, JSON.stringify(all));
    } catch {
      // A browser that keeps nothing keeps the columns until the page is left.
    }
  };
  return [columns, change];
}

/** Return the names of the attributes of these runs, those of Weft itself left out. */
export function attributeNames(rows: Iterable<ListedRun>): string[] {
  const names = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row.attributes)) if (!name.startsWith("weft.")) names.add(name);
  return [...names].sort();
}

/** Return an attribute as text; empty if the run does not have it. */
export function attributeText(row: ListedRun, name: string): string {
  const attributes = row.attributes as Record<string, unknown>;
  if (!Object.hasOwn(attributes, name)) return "";
  const value = attributes[name];
  return typeof value === "string" ? value : JSON.stringify(value);
}
