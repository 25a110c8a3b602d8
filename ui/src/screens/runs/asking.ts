/** The requests of the Runs screen. */
import { api, read } from "../../api/client";
import type { Runs } from "../../api/schema";
import { serverNow } from "../../shell/clock";
import { askedOf, type RunFilter } from "./filter";

export const PAGE = 50;

export function askRuns(filter: RunFilter, cursor: string | null, signal?: AbortSignal): Promise<Runs> {
  const query = { ...askedOf(filter, serverNow()), limit: PAGE, ...(cursor === null ? {} : { cursor }) };
  return read(api.GET("/api/v1/runs", { params: { query }, signal }));
}
