/** What the timeline asks for, and the state of its window: following, or still at what a person looks at. */
import { useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { TimelineRow, TimelineView } from "../api/schema";
import type { RunChosen } from "../screens/run/chosen";
import { filterQuery, type FilterQuery } from "../screens/run/filter-query";
import { useSent } from "../screens/run/sent";
import { useNow } from "../shell/clock";
import { panBy, makeScale, viewBetween, zoomAround, type Gap, type Scale, type View } from "./timeline-scale";

const SETTLE_MS = 120;
const PLACES_PER_PAGE = 200;

type Window = { view: View; gaps: Gap[] };
export type TimelineControl = {
  data: TimelineView | undefined;
  error: unknown;
  retry: () => void;
  scale: Scale;
  /** The right end of bars that are still open. */
  now: number;
  isFollowing: boolean;
  zoom: (x: number, factor: number) => void;
  pan: (pixels: number) => void;
  show: (left: number, right: number) => void;
  showAll: () => void;
  follow: () => void;
  openGap: (gap: Gap) => void;
};

/**
 * Hold the window of the timeline. Without a window of its own it follows: the right edge is now. `automatic` is what the
 * screen selected by itself; it does not end following. Nothing is asked for until the timeline is in sight.
 */
export function useTimeline(run: RunChosen, automatic: string | null, width: number, isInSight: boolean): TimelineControl {
  const [window, setWindow] = useState<Window | null>(null);
  const [opened, setOpened] = useState<number[]>([]);
  const asked = useSettled(window?.view ?? null);
  const columns = Math.max(10, Math.min(800, Math.round(width / 3)));
  const answer = useAsked(
    ["run", run.id, "timeline", run.at, asked?.since ?? null, asked?.until ?? null, columns, run.q],
    (signal) => askTimeline(run, { ...windowQuery(asked), columns, ...filterQuery(run.q) }, signal),
    { enabled: isInSight },
  );
  const data = answer.data;
  const isLive = run.at === null && data !== undefined && data.rows.some((row) => (row.until ?? null) === null);
  const now = useMovingNow(data?.now ?? 0, isLive);
  const all = useMemo<View>(() => ({ since: data?.begun ?? 0, until: Math.max((data?.begun ?? 0) + 1, now) }), [data?.begun, now]);
  const gaps = useMemo(() => reaching(data?.gaps ?? [], data?.now ?? 0, now).filter((gap) => !opened.includes(gap.since)), [data, now, opened]);
  const current = useMemo<Window>(() => window ?? { view: all, gaps }, [window, all, gaps]);
  const scale = useMemo(() => makeScale(current.view, current.gaps, width), [current, width]);

  const setView = (view: View): void => setWindow({ view, gaps: current.gaps });
  useFollowingAgain(run.id, () => setWindow(null));
  useStillness(run.sel === automatic ? null : run.sel, data !== undefined, useCallback(() => setWindow((known) => known ?? current), [current]));
  return {
    data,
    error: answer.error,
    retry: () => void answer.refetch(),
    scale,
    now: run.at === null ? now : (data?.now ?? 0),
    isFollowing: window === null,
    zoom: (x, factor) => setView(zoomAround(scale, x, factor, all)),
    pan: (pixels) => setView(panBy(scale, pixels, all)),
    show: (left, right) => setView(viewBetween(scale, left, right, all)),
    showAll: () => setWindow({ view: all, gaps }),
    follow: () => setWindow(null),
    openGap: (gap) => {
      setOpened((known) => [...known, gap.since]);
      if (window !== null) setWindow({ view: window.view, gaps: window.gaps.filter((one) => one.since !== gap.since) });
    },
  };
}

/** A command that was sent is followed. */
function useFollowingAgain(id: string, follow: () => void): void {
  const sent = useSent(id);
  const [known, setKnown] = useState(sent);
  if (sent === known) return;
  setKnown(sent);
  follow();
}

/** A person's selection ends following: what was selected keeps its place. */
function useStillness(sel: string | null, isReady: boolean, stop: () => void): void {
  const before = useRef<string | null>(null);
  useEffect(() => {
    if (!isReady || before.current === sel) return;
    before.current = sel;
    if (sel !== null) stop();
  }, [sel, isReady, stop]);
}

/** The server's now moves on between two answers while something is open. */
function useMovingNow(answered: number, isLive: boolean): number {
  const now = useNow(isLive ? 1000 : 3_600_000);
  return isLive ? Math.max(answered, now) : answered;
}

/** A gap that lasted until the answer lasts on. */
function reaching(gaps: Gap[], answered: number, now: number): Gap[] {
  return gaps.map((gap) => (gap.until >= answered && answered > 0 ? { since: gap.since, until: now } : gap));
}

/** Return a value once it has not changed for a moment. */
function useSettled(view: View | null): View | null {
  const [settled, setSettled] = useState(view);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(view), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [view]);
  return view === null ? null : settled;
}

type Asked = FilterQuery & { since?: string; until?: string; columns?: number; box?: string; after?: number; limit?: number };

function windowQuery(view: View | null): Asked {
  if (view === null) return {};
  return { since: new Date(Math.floor(view.since)).toISOString(), until: new Date(Math.ceil(view.until)).toISOString() };
}

function askTimeline(run: RunChosen, query: Asked, signal: AbortSignal): Promise<TimelineView> {
  const at = run.at === null ? {} : { at: run.at };
  return read(api.GET("/api/v1/runs/{id}/timeline", { params: { path: { id: run.id }, query: { ...query, ...at } }, signal }));
}

export type OpenedBox = { rows: TimelineRow[]; isMore: boolean; error: unknown };

/** Ask for the places of the boxes that are open, as many pages of each as somebody wanted to see. */
export function useOpened(run: RunChosen, pages: ReadonlyMap<string, number>): ReadonlyMap<string, OpenedBox> {
  const wanted = [...pages];
  const found = useQueries({
    queries: wanted.map(([box, count]) => ({
      queryKey: ["run", run.id, "timeline-places", run.at, box, count, run.q],
      queryFn: ({ signal }: { signal: AbortSignal }) => askPlaces(run, box, count, signal),
      placeholderData: (previous: Pages | undefined) => previous,
    })),
  });
  return new Map(wanted.map(([box], at) => {
    const { data, error } = found[at]!;
    return [box, { rows: data?.rows ?? [], isMore: data?.isMore ?? false, error }];
  }));
}

type Pages = { rows: TimelineRow[]; isMore: boolean };

async function askPlaces(run: RunChosen, box: string, pages: number, signal: AbortSignal): Promise<Pages> {
  const rows: TimelineRow[] = [];
  let after: number | null = null;
  for (let page = 0; page < pages; page++) {
    const query: Asked = { ...filterQuery(run.q), box, limit: PLACES_PER_PAGE, ...(after === null ? {} : { after }) };
    const found: TimelineView = await askTimeline(run, query, signal);
    rows.push(...found.rows);
    after = found.after;
    if (after === null) break;
  }
  return { rows, isMore: after !== null };
}
