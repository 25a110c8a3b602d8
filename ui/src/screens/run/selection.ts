/** What is selected: a box of the picture, and the place if it is one of several. */
import { keepPreviousData, useInfiniteQuery, useQuery, type UseInfiniteQueryResult, type UseQueryResult, type InfiniteData } from "@tanstack/react-query";

import { api, read } from "../../api/client";
import type { DrawnBox, DrawnPicture, PlaceDetail, PlaceRow, PlacesView } from "../../api/schema";
import { placeOfSel, type RunChosen } from "./chosen";
import { runKey } from "./data";

export type Selection = { box: string; drawn: DrawnBox | undefined; place: PlaceRow | null };

const FOUND_MAX = 200;
/** Keys that begin so are not asked for again with the rest of a run. */
const PLACE = "place";

function asOf(run: RunChosen): { at?: number } {
  return run.at === null ? {} : { at: run.at };
}

/** Find the box or the place that is selected. Undefined while it is not known. */
export function useSelection(run: RunChosen, picture: DrawnPicture | undefined): Selection | null | undefined {
  const { sel } = run;
  const drawn = sel === null ? undefined : picture?.boxes.find((box) => box.id === sel);
  const found = useQuery({
    queryKey: runKey(run, "place-of", sel),
    queryFn: ({ signal }) => findPlace(run, sel ?? "", signal),
    enabled: sel !== null && drawn === undefined && picture !== undefined,
    placeholderData: keepPreviousData,
  });
  if (sel === null) return null;
  if (drawn) return { box: sel, drawn, place: null };
  if (found.data === undefined) return found.isPending ? undefined : null;
  const place = found.data;
  if (place === null || place.place !== placeOfSel(sel)) return null;
  return { box: place.box, drawn: picture?.boxes.find((box) => box.id === place.box), place };
}

async function findPlace(run: RunChosen, sel: string, signal: AbortSignal): Promise<PlaceRow | null> {
  const text = placeOfSel(sel);
  const query = { ...asOf(run), q: text.slice(0, 1000), limit: FOUND_MAX };
  const { places } = await read(api.GET("/api/v1/runs/{id}/places", { params: { path: { id: run.id }, query }, signal }));
  return places.find((row) => row.place === text) ?? null;
}

export type Mark = PlaceRow["mark"];

/** The places of a box, page by page. */
export function usePlacesOf(run: RunChosen, box: string, marks: readonly Mark[]): UseInfiniteQueryResult<InfiniteData<PlacesView>> {
  return useInfiniteQuery({
    queryKey: runKey(run, "places-of", box, marks),
    queryFn: ({ signal, pageParam }) => {
      const query = { ...asOf(run), box, mark: [...marks], limit: 100, ...(pageParam > 0 ? { after: pageParam } : {}) };
      return read(api.GET("/api/v1/runs/{id}/places", { params: { path: { id: run.id }, query }, signal }));
    },
    initialPageParam: 0,
    getNextPageParam: (page) => page.after,
    placeholderData: keepPreviousData,
  });
}

/** A place with its values. It is asked for again when its row changes, so a place that a retry has dropped is not. */
export function usePlace(run: RunChosen, row: PlaceRow): UseQueryResult<PlaceDetail> {
  return useQuery({
    queryKey: [PLACE, ...runKey(run, "place", row.number, row.mark, row.ended, row.attempts)],
    queryFn: ({ signal }) => read(api.GET("/api/v1/runs/{id}/places/{number}", { params: { path: { id: run.id, number: String(row.number) }, query: asOf(run) }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** Find the run that a box stands for; null if it stands for none. */
export async function childOf(run: RunChosen, box: string): Promise<string | null> {
  const query = { ...asOf(run), box, order: "last" as const, limit: 50 };
  const { places } = await read(api.GET("/api/v1/runs/{id}/places", { params: { path: { id: run.id }, query } }));
  return places.find((row) => row.child)?.child ?? null;
}
