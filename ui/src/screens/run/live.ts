/**
 * One live connection per screen. It tells how the run stands, which is put in place; what lies below the picture is asked
 * for again when places have changed, at most ten times a second.
 */
import { useEffect, useRef } from "react";

import { follow, type Frame } from "../../api/live";
import { queries } from "../../api/queries";
import type { ChangedRun, ChangedStanding, DrawnPicture, Explanation, RunDetail, StandingView } from "../../api/schema";
import { sayPolitely } from "../../shell/notices";
import { isOver } from "../../shell/words";
import { isOpenRun } from "./data";
import { newsText, withChanges, withNews } from "./live-patches";

const EVERY_MS = 100;
/** Asking again takes at most a part of the time, so that whoever looks at a busy run does not slow it down. */
const PART = 50;
/** What an answer takes at least, however little the server has to do for it. */
const WAY_MS = 10;
const EVERY_MS_MAX = 10_000;
/** What the frames themselves bring. */
const BROUGHT: ReadonlySet<unknown> = new Set(["detail", "standing", "explain", "picture"]);

/** Keep what is shown of a run up to date while the run is open. */
export function useLiveRun(id: string, run: RunDetail | undefined): void {
  const isOpen = isOpenRun(run);
  useEffect(() => {
    if (!isOpen) return undefined;
    const refreshAll = gathered(() => refreshRun(id));
    const refreshBelow = gathered(() => refreshRun(id, BROUGHT));
    return follow(`/runs/${encodeURIComponent(id)}/live`, { as: "places" }, {
      onFrame: (frame) => onFrame(id, frame, refreshAll, refreshBelow),
      onOpen: (isAgain) => {
        if (isAgain) refreshAll();
      },
    });
  }, [id, isOpen]);
  useGrownUnseen(id, isOpen, run?.seq ?? 0);
}

/** A run that is over may be retried, and even end again, while no connection tells. Its other parts are then asked for too. */
function useGrownUnseen(id: string, isOpen: boolean, seq: number): void {
  const known = useRef(seq);
  useEffect(() => {
    if (known.current === seq) return;
    const isFirst = known.current === 0;
    known.current = seq;
    if (!isOpen && !isFirst) void refreshRun(id);
  }, [id, isOpen, seq]);
}

function onFrame(id: string, frame: Frame, refreshAll: () => void, refreshBelow: () => void): void {
  switch (frame.event) {
    case "place":
    case "gap": return refreshBelow(); // changed places, named or not
    case "standing": // an event may change no place, and is in the log
      if (onStanding(id, frame.data as ChangedStanding)) refreshBelow();
      return undefined;
    case "explain": return void queries.setQueryData<Explanation>(["run", id, "explain", null], frame.data as Explanation);
    case "run":
      if (onRun(id, frame.data as ChangedRun, refreshAll)) refreshBelow();
      return undefined;
    default: return refreshAll(); // the end, a problem
  }
}

/** Take over how the run stands. Returns whether that is news. */
function onStanding(id: string, change: ChangedStanding): boolean {
  const key = ["run", id, "standing", null];
  const before = queries.getQueryData<StandingView>(key);
  const after = withChanges(before, change);
  queries.setQueryData<StandingView>(key, after);
  queries.setQueryData<RunDetail>(["run", id, "detail", null], (run) => run && { ...run, seq: Math.max(run.seq, change.seq) });
  const news = newsText(before, after);
  if (news) sayPolitely(news);
  const picture = ["run", id, "picture", null];
  if (queries.getQueryData<DrawnPicture>(picture)?.digest !== change.digest) void queries.invalidateQueries({ queryKey: picture }, { cancelRefetch: false });
  return before?.seq !== change.seq;
}

/** Take over the run as a whole. Returns whether that is news. */
function onRun(id: string, news: ChangedRun, refreshAll: () => void): boolean {
  const key = ["run", id, "detail", null];
  const before = queries.getQueryData<RunDetail>(key);
  if (before === undefined || isOver(news.status)) {
    refreshAll();
    return false;
  }
  if (before.status !== news.status) sayPolitely(`${id} is ${news.status.replace("_", " ")}`);
  queries.setQueryData<RunDetail>(key, withNews(before, news));
  return before.seq !== news.seq || before.status !== news.status;
}

/** Ask again for everything that is shown of a run as it is now, except for some names. */
export async function refreshRun(id: string, except?: ReadonlySet<unknown>): Promise<void> {
  await queries.invalidateQueries(
    { predicate: ({ queryKey: [kind, run, name, at] }) => kind === "run" && run === id && at === null && !except?.has(name) },
    { cancelRefetch: false },
  );
}

/** Return a function that calls another one soon, never twice at once, and less often the longer the other one takes. */
export function gathered(act: () => Promise<void>, everyMs = EVERY_MS): () => void {
  let isWanted = false;
  let isBusy = false;
  let notBefore = 0;
  const go = (): void => {
    isBusy = true;
    isWanted = false;
    setTimeout(() => {
      const began = performance.now();
      void act().catch(() => undefined).then(() => {
        const now = performance.now();
        notBefore = now + Math.min(EVERY_MS_MAX, PART * (now - began - WAY_MS));
        isBusy = false;
        if (isWanted) go();
      });
    }, Math.max(everyMs, notBefore - performance.now()));
  };
  return () => {
    if (isBusy) isWanted = true;
    else go();
  };
}
