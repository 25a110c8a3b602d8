/** Moving through the events of a run: one request is under way at a time, and only the last position is asked for. */
import { useIsFetching } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, read } from "../../api/client";
import { placeOfSel, travel, type RunChosen } from "./chosen";
import { played, type Playing, type Step } from "./play";

/** Return the event that is wanted, and a function to want another. The address follows when nothing is under way. */
export function useTravel(run: RunChosen, seq: number): [number, (to: number) => void] {
  const [wanted, setWanted] = useState<number | null>(null);
  const busy = useIsFetching({ predicate: ({ queryKey }) => queryKey[0] === "run" && queryKey[1] === run.id && typeof queryKey[3] === "number" });
  const shown = run.at ?? seq;
  useEffect(() => {
    if (wanted === null || busy > 0) return;
    const timer = setTimeout(() => {
      setWanted(null);
      if (wanted !== shown || (run.at === null) !== (wanted >= seq)) travel(wanted >= seq ? null : wanted);
    });
    return () => clearTimeout(timer);
  }, [wanted, busy, shown, run.at, seq]);
  const want = (to: number): void => setWanted(Math.min(seq, Math.max(1, to)));
  return [wanted ?? shown, want];
}

/** Return the event before or after this one that is about the selection; null if there is none. */
export async function neighbour(run: RunChosen, from: number, by: -1 | 1): Promise<number | null> {
  const where = by < 0 ? { before: from } : { after: from };
  const query = { ...where, about: placeOfSel(run.sel ?? ""), limit: 1 };
  const found = await read(api.GET("/api/v1/runs/{id}/events", { params: { path: { id: run.id }, query } }));
  return found.events[0]?.seq ?? null;
}

const TICK_MS = 100;
const AHEAD = 200;

/** Play from the event that is shown until the newest. */
export function usePlay(run: RunChosen, seq: number, shown: number, want: (to: number) => void): { isPlaying: boolean; toggle: () => void; speed: number; setSpeed: (speed: number) => void } {
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const latest = useRef({ seq, shown, want, speed });
  useEffect(() => {
    latest.current = { seq, shown, want, speed };
  });
  useEffect(() => {
    if (!isPlaying) return undefined;
    let steps: Step[] = [];
    let asking = false;
    let playing: Playing | null = null;
    const ask = (after: number): void => {
      asking = true;
      askSteps(run.id, after).then((found) => {
        steps = found;
        asking = false;
      }, () => setPlaying(false));
    };
    const first = latest.current.shown >= latest.current.seq ? 1 : latest.current.shown;
    latest.current.want(first);
    ask(first - 1);
    const timer = setInterval(() => {
      if (asking || steps.length === 0) return;
      playing ??= { seq: first, clock: steps[0]!.at };
      playing = played(playing, steps, TICK_MS, latest.current.speed);
      latest.current.want(playing.seq);
      if (playing.seq >= latest.current.seq) setPlaying(false);
      else if (playing.seq >= steps.at(-1)!.seq) ask(playing.seq);
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [isPlaying, run.id]);
  const toggle = (): void => setPlaying((known) => !known);
  return { isPlaying, toggle, speed, setSpeed };
}

async function askSteps(id: string, after: number): Promise<Step[]> {
  const query = { after: Math.max(0, after), limit: AHEAD };
  const found = await read(api.GET("/api/v1/runs/{id}/events", { params: { path: { id }, query } }));
  return found.events.map((event) => ({ seq: event.seq, at: Date.parse(event.at) }));
}
