/**
 * What the screen of a run asks the server for. The keys are ["run", id, name, at, ...]; `at` null means now, and what is
 * asked for with it is asked for again when the run moves on.
 */
import type { UseQueryResult } from "@tanstack/react-query";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { DrawnPicture, Explanation, PlacesView, RunDetail, StandingView } from "../../api/schema";
import { isOver } from "../../shell/words";
import type { RunChosen } from "./chosen";
import { useSent } from "./sent";

/** A run that is over changes only when somebody retries it. */
const OVER_MS = 10_000;
/** A host takes up a command soon, and a run that is over has no live connection that would tell. */
const SENT_MS = 1000;

export function runKey(run: Pick<RunChosen, "id" | "at">, name: string, ...more: unknown[]): readonly unknown[] {
  return ["run", run.id, name, run.at, ...more];
}

function asOf(run: RunChosen): { at?: number } {
  return run.at === null ? {} : { at: run.at };
}

/** The run as it is now, whatever event is chosen. */
export function useRun(id: string): UseQueryResult<RunDetail> {
  const refetchMs = useSent(id) > 0 ? SENT_MS : OVER_MS;
  return useAsked(["run", id, "detail", null], (signal) => read(api.GET("/api/v1/runs/{id}", { params: { path: { id } }, signal })), { refetchMs });
}

export function usePicture(run: RunChosen): UseQueryResult<DrawnPicture> {
  return useAsked(runKey(run, "picture"), (signal) => {
    const asked = read(api.GET("/api/v1/runs/{id}/picture", { params: { path: { id: run.id }, query: asOf(run) }, signal }));
    return asked as Promise<DrawnPicture>; // the client forgets that points are pairs
  });
}

export function useStanding(run: RunChosen): UseQueryResult<StandingView> {
  return useAsked(runKey(run, "standing"), (signal) => read(api.GET("/api/v1/runs/{id}/standing", { params: { path: { id: run.id }, query: asOf(run) }, signal })));
}

export function useExplanation(run: RunChosen): UseQueryResult<Explanation> {
  return useAsked(runKey(run, "explain"), (signal) => read(api.GET("/api/v1/runs/{id}/explain", { params: { path: { id: run.id }, query: asOf(run) }, signal })));
}

/** The first places of the run or of one box. */
export function usePlaces(run: RunChosen, box?: string): UseQueryResult<PlacesView> {
  const query = { ...asOf(run), ...(box === undefined ? {} : { box }), limit: 200 };
  return useAsked(runKey(run, "places", box ?? null), (signal) => read(api.GET("/api/v1/runs/{id}/places", { params: { path: { id: run.id }, query }, signal })));
}

export function isOpenRun(run: RunDetail | undefined): boolean {
  return run !== undefined && !isOver(run.status);
}
