/** How many runs there are by state, and how many began in each hour. */
import { useEffect } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import { serverNow } from "../../shell/clock";
import { askedOf, type RunFilter } from "./filter";
import type { Hour } from "./hours";

/** `more`: there are at least so many. */
export type Count = { key: string; count: number; more: boolean; failed: number };

const AGAIN_MS = 10_000;
const HOURS_AGAIN_MS = 60_000;

async function askCounts(by: "status" | "hour", filter: RunFilter, signal: AbortSignal): Promise<Count[]> {
  const query = { ...askedOf(filter, serverNow()), by };
  return (await read(api.GET("/api/v1/counts", { params: { query }, signal }))).counts;
}

/** Return the number of runs by state, asked again after changes. Its own states do not narrow it: they are the choice. */
export function useCounts(filter: RunFilter, changes: number): ReadonlyMap<string, Count> | undefined {
  const others: RunFilter = { ...filter, status: [] };
  const asked = useAsked(["counts", "status", others], (signal) => askCounts("status", others, signal), { refetchMs: AGAIN_MS });
  const { refetch } = asked;
  useEffect(() => {
    if (changes > 0) void refetch({ cancelRefetch: false });
  }, [changes, refetch]);
  return asked.data && new Map(asked.data.map((one) => [one.key, one]));
}

/** Return the starts of each hour of the last day, or of the time that the filter is for. The rows of the list come first. */
export function useHours(filter: RunFilter, hasRows: boolean): { hours: Hour[]; isChosen: boolean } | undefined {
  const asked = useAsked(["counts", "hour", filter], (signal) => askCounts("hour", filter, signal), { refetchMs: HOURS_AGAIN_MS, enabled: hasRows });
  if (!asked.data || asked.data.length === 0) return undefined;
  return { hours: asked.data.map((one) => ({ ...one, at: Date.parse(one.key) })), isChosen: filter.since !== "" || filter.until !== "" };
}
