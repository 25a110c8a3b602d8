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
    case "place": return refreshBelow();
    case "standing":
      onStanding(id, frame.data as ChangedStanding);
      return refreshBelow(); // an event may change no place, and is in the log
    case "explain": return void queries.setQueryData<Explanation>(["run", id, "explain", null], frame.data as Explanation);
    case "run":
      onRun(id, frame.data as ChangedRun, refreshAll);
      return refreshBelow();
    default: return refreshAll(); // a gap, the end, a problem
  }
}

function onStanding(id: string, change: ChangedStanding): void {
  const key = ["run", id, "standing", null];
  const before = queries.getQueryData<StandingView>(key);
  const after = withChanges(before, change);
  queries.setQueryData<StandingView>(key, after);
  queries.setQueryData<RunDetail>(["run", id, "detail", null], (run) => run && { ...run, seq: Math.max(run.seq, change.seq) });
  const news = newsText(before, after);
  if (news) sayPolitely(news);
  const picture = ["run", id, "picture", null];
  if (queries.getQueryData<DrawnPicture>(picture)?.digest !== change.digest) void queries.invalidateQueries({ queryKey: picture }, { cancelRefetch: false });
}

function onRun(id: string, news: ChangedRun, refreshAll: () => void): void {
  const key = ["run", id, "detail", null];
  const before = queries.getQueryData<RunDetail>(key);
  if (before === undefined || isOver(news.status)) return refreshAll();
  if (before.status !== news.status) sayPolitely(`${id} is ${news.status.replace("_", " ")}`);
  queries.setQueryData<RunDetail>(key, withNews(before, news));
}

/** Ask again for everything that is shown of a run as it is now, except for some names. */
export async function refreshRun(id: string, except?: ReadonlySet<unknown>): Promise<void> {
  await queries.invalidateQueries(
    { predicate: ({ queryKey: [kind, run, name, at] }) => kind === "run" && run === id && at === null && !except?.has(name) },
    { cancelRefetch: false },
  );
}

/** Return a function that calls another one soon, never twice at once and not too often. */
export function gathered(act: () => Promise<void>, everyMs = EVERY_MS): () => void {
  let isWanted = false;
  let isBusy = false;
  const go = (): void => {
    isBusy = true;
    isWanted = false;
    setTimeout(() => {
      void act().catch(() => undefined).then(() => {
        isBusy = false;
        if (isWanted) go();
      });
    }, everyMs);
  };
  return () => {
    if (isBusy) isWanted = true;
    else go();
  };
}
