/** What a person has set in this browser: theme, time zone, single keys. */
import { useSyncExternalStore } from "react";

export type Settings = {
  theme: "system" | "light" | "dark";
  zone: "local" | "utc";
  singleKeys: boolean;
  name: string;
};

const NAME = "weft.settings";
const DEFAULTS: Settings = { theme: "system", zone: "local", singleKeys: true, name: "" };
const listeners = new Set<() => void>();
let current = load();

function load(): Settings {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Settings>) };
  } catch {
    return DEFAULTS;
  }
}

export function settings(): Settings {
  return current;
}

export function changeSettings(changes: Partial<Settings>): void {
  current = { ...current, ...changes };
  try {
    localStorage.setItem(NAME, JSON.stringify(current));
  } catch {
    // A browser that keeps nothing keeps the setting until the page is left.
  }
  applyTheme();
  for (const listener of listeners) listener();
}

export function applyTheme(): void {
  if (current.theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = current.theme;
}

export function useSettings(): Settings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
