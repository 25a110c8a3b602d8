/** What is chosen on the screen of a run: the event, the selection, the tab and the filter. All of it is in the address. */
import { useMemo } from "react";

import { choose, useChosen } from "../../shell/address";

export const TABS = ["conversation", "log", "data", "output", "changes"] as const;
export type Tab = (typeof TABS)[number];
export const TAB_TITLES: Record<Tab, string> = { conversation: "Conversation", log: "Log", data: "Data", output: "Output", changes: "Changes" };

export type RunChosen = { id: string; at: number | null; sel: string | null; tab: Tab; q: string };

export function useRunChosen(id: string): RunChosen {
  const chosen = useChosen();
  return useMemo(() => readChosen(id, chosen), [id, chosen]);
}

/** Read what is chosen. What makes no sense counts as not chosen. */
export function readChosen(id: string, chosen: URLSearchParams): RunChosen {
  const at = chosen.get("at") ?? "";
  const tab = chosen.get("tab") ?? chosen.get("pane"); // a pane of a narrow screen may be a tab of a wide one
  return {
    id,
    at: /^[1-9]\d{0,14}$/.test(at) ? Number(at) : null,
    sel: chosen.get("sel") || null,
    tab: TABS.find((one) => one === tab) ?? "log",
    q: chosen.get("q") ?? "",
  };
}

/** Return what is chosen in a run of so many events: an event beyond the last one is now. */
export function withinRun(chosen: RunChosen, seq: number): RunChosen {
  return chosen.at !== null && chosen.at > seq ? { ...chosen, at: null } : chosen;
}

/** Select a place by its text, or a box by its id. Null selects nothing. */
export function select(sel: string | null): void {
  choose({ sel }, { replace: isChosen("sel") });
}

/** Go to an event. Null is now. */
export function travel(at: number | null): void {
  choose({ at }, { replace: isChosen("at") });
}

/**
 * Return how a place is selected. The first place of a box that was reached several times has the text of its box, so it
 * gets the number that the others have; `placeOfSel` takes it away again.
 */
export function selOf(row: { place: string; box: string }): string {
  return row.place === row.box ? `${row.place}#1` : row.place;
}

export function placeOfSel(sel: string): string {
  return sel.endsWith("#1") ? sel.slice(0, -2) : sel;
}

/** `first` is the tab that is shown if none is chosen. */
export function chooseTab(tab: Tab, first: Tab = "log"): void {
  choose({ tab: tab === first ? null : tab }, { replace: true });
}

export function filterRun(q: string): void {
  choose({ q }, { replace: true });
}

/** Going from one choice to the next replaces it, so that Back leads out of the choice and not through all of them. */
function isChosen(name: string): boolean {
  return new URLSearchParams(location.search).has(name);
}
