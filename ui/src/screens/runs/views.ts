/** Saved views: three that everybody has, those of this browser, and those of everybody. */
import { useState } from "react";

import { api, read } from "../../api/client";
import { queries, useAsked } from "../../api/queries";

/** `query` is the search part of the address, without its question mark. */
export type View = { name: string; query: string; from: "weft" | "browser" | "everybody" };

export const BUILT_IN: View[] = [
  { name: "Needs me", query: "status=failed&status=held&status=paused", from: "weft" },
  { name: "Waits for people", query: "waits=person", from: "weft" },
  { name: "Stuck", query: "status=running&status=pending&unchanged=1h", from: "weft" },
];

const KEPT = "weft.views";
const EVERYBODYS = ["views"];

function load(): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(one: unknown): one is View {
  return typeof one === "object" && one !== null && "name" in one && typeof one.name === "string" && "query" in one && typeof one.query === "string";
}

export type Views = { views: View[]; error: unknown; save: (view: View) => Promise<void>; remove: (view: View) => Promise<void> };

export function useViews(): Views {
  const [own, setOwn] = useState(load);
  const asked = useAsked(EVERYBODYS, (signal) => read(api.GET("/api/v1/views", { signal })));
  const keep = (views: View[]): void => {
    setOwn(views);
    localStorage.setItem(KEPT, JSON.stringify(views));
  };
  const shared: View[] = (asked.data?.views ?? []).map(({ name, query }) => ({ name, query, from: "everybody" }));
  return {
    views: [...BUILT_IN, ...own, ...shared],
    error: asked.error,
    save: async (view) => {
      if (view.from === "browser") return keep([...own.filter(({ name }) => name !== view.name), view]);
      await read(api.PUT("/api/v1/views/{name}", { params: { path: { name: view.name } }, body: { query: view.query } }));
      await queries.invalidateQueries({ queryKey: EVERYBODYS });
    },
    remove: async (view) => {
      if (view.from === "browser") return keep(own.filter(({ name }) => name !== view.name));
      await read(api.DELETE("/api/v1/views/{name}", { params: { path: { name: view.name } } }));
      await queries.invalidateQueries({ queryKey: EVERYBODYS });
    },
  };
}
