/** Where the lines of a log come from: events, or places. */
import { api, read } from "../../api/client";
import type { LogEventView, PlaceRow } from "../../api/schema";
import { parseFilter } from "./filter";
import { filterQuery } from "./filter-query";
import { PAGE, type Source } from "./log-window";

export function eventSource(id: string, q: string): Source<LogEventView> {
  const box = parseFilter(q).boxes[0];
  const narrowed = { ...filterQuery(q), ...(box === undefined ? {} : { box }), limit: PAGE };
  return {
    isChanging: false,
    keyOf: (event) => `${event.seq}.${event.part ?? 0}`,
    numberOf: (event) => event.seq,
    ask: async (where, signal) => {
      const query = { ...narrowed, ...(where === "end" ? { order: "last" as const } : where) };
      const found = await read(api.GET("/api/v1/runs/{id}/events", { params: { path: { id }, query }, signal }));
      return { items: found.events, before: found.before, after: found.after };
    },
  };
}

/** One line per place, as it stood at the chosen event. */
export function placeSource(id: string, q: string, at: number | null): Source<PlaceRow> {
  const box = parseFilter(q).boxes[0];
  const narrowed = { ...filterQuery(q), ...(box === undefined ? {} : { box }), ...(at === null ? {} : { at }), limit: PAGE };
  return {
    isChanging: at === null,
    keyOf: (place) => String(place.number),
    numberOf: (place) => place.number,
    ask: async (where, signal) => {
      const isBack = where === "end" || "before" in where;
      const after = where === "end" ? {} : { after: "before" in where ? where.before : where.after };
      const query = { ...narrowed, ...after, order: isBack ? ("last" as const) : ("first" as const) };
      const found = await read(api.GET("/api/v1/runs/{id}/places", { params: { path: { id }, query }, signal }));
      return isBack
        ? { items: [...found.places].reverse(), before: found.after, after: null }
        : { items: found.places, before: null, after: found.after };
    },
  };
}
