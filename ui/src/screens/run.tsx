/** One run: what it waits for, its picture, its timeline, its log, at any of its events. */
import "./run/run.css";

import { useEffect, useMemo, useRef, useState, type ReactElement } from "react";

import { Problem } from "../api/client";
import type { RunDetail } from "../api/schema";
import { useNarrow } from "../parts/narrow";
import { Picture } from "../parts/picture";
import { ProblemNote } from "../parts/problem";
import { Timeline } from "../parts/timeline";
import { choose, navigate, runPath, useChosen } from "../shell/address";
import { useKeys } from "../shell/keys";
import { toast } from "../shell/notices";
import { useTitle } from "../shell/questions";
import { counted, MARK_SIGNS, STATUS_MARKS, type RunStatus } from "../shell/words";
import { BottomPane, useTabs } from "./run/bottom";
import { select, travel, useRunChosen, withinRun, type RunChosen } from "./run/chosen";
import { useExplanation, usePicture, useRun, useStanding } from "./run/data";
import type { Asked } from "./run/dialogs";
import { ExplainLine } from "./run/explain";
import { foundBoxes } from "./run/filter";
import { RunFilterField } from "./run/filter-field";
import { RunHeader } from "./run/header";
import { Inspector } from "./run/inspector";
import { useLiveRun } from "./run/live";
import { NotFound } from "./run/not-found";
import { RunDialog } from "./run/run-dialog";
import { childOf, useSelection } from "./run/selection";
import { useSent } from "./run/sent";
import { PaneTabs, usePane, type Pane } from "./run/panes";
import { PastNote } from "./run/past";
import { TravelBar } from "./run/travel-bar";
import { RunTree, useHasRelatives } from "./run/tree";

export default function Run({ id }: { id: string }): ReactElement {
  const asked = useRunChosen(id);
  const run = useRun(id);
  const chosen = useMemo(() => withinRun(asked, run.data?.seq ?? Infinity), [asked, run.data?.seq]);
  useNothingBeyond(asked.at, run.isFetching ? undefined : run.data?.seq);
  useLiveRun(id, run.data);
  const status = run.data?.status;
  useTitle(status ? `${MARK_SIGNS[STATUS_MARKS[status]]} ${id}` : id);
  if (run.data === undefined) {
    if (run.error instanceof Problem && run.error.status === 404) return <NotFound id={id} error={run.error} />;
    return run.error ? <><h1>{id}</h1><ProblemNote error={run.error} retry={() => void run.refetch()} /></> : <h1 className="unseen">{id}</h1>;
  }
  return <RunScreen chosen={chosen} run={run.data} error={run.error} />;
}

/** Whether something has been so at least once. What is less urgent is asked for after what is needed first. */
function useOnce(isSo: boolean): boolean {
  const [wasSo, setSo] = useState(isSo);
  if (isSo && !wasSo) setSo(true);
  return wasSo || isSo;
}

/** An address with an event that the run has not reached leads to now, and says so. `seq` is undefined while it is asked for. */
function useNothingBeyond(at: number | null, seq: number | undefined): void {
  useEffect(() => {
    if (at === null || seq === undefined || at <= seq) return;
    toast(`There is no event ${at.toLocaleString("en")}: the run has ${counted(seq, "event")}. It is shown as it is now.`);
    choose({ at: null }, { replace: true });
  }, [at, seq]);
}

function RunScreen({ chosen, run, error }: { chosen: RunChosen; run: RunDetail; error: unknown }): ReactElement {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [lit, setLit] = useState<ReadonlySet<string>>(new Set());
  const explanation = useExplanation(chosen);
  const standing = useStanding(chosen);
  const picture = usePicture(chosen);
  const selection = useSelection(chosen, picture.data);
  const isExplained = useOnce(explanation.isFetched);
  const hasRelatives = useHasRelatives(run, isExplained);
  const pane = usePane();
  const lower = useTabs(chosen, run);
  const automatic = useSelectedFailure(chosen, run, pane);
  const sent = useSent(chosen.id);
  const follows = chosen.at === null && (chosen.sel === null || chosen.sel === automatic) ? sent : null;
  useRunKeys(chosen, run);
  const light = (arrows: string[]): void => setLit(new Set(arrows));
  const problem = error ?? explanation.error;
  return (
    <div className={`run-screen ${chosen.at === null ? "" : "past"}`} data-pane={pane}>
      <RunHeader chosen={chosen} run={run} status={(chosen.at === null ? run.status : (standing.data?.status ?? run.status)) as RunStatus} ask={setAsked} />
      {chosen.at !== null && <PastNote at={chosen.at} run={run} standing={standing.data} />}
      {problem ? <ProblemNote error={problem} /> : null}
      <ExplainLine chosen={chosen} run={run} explanation={explanation.data} ask={setAsked} light={light} />
      <PaneTabs chosen={lower.run} tabs={lower.tabs} />
      <div className="run-panes">
        {hasRelatives && <div className="run-tree"><RunTree run={run} /></div>}
        <div className="run-picture">
          <PicturePane chosen={chosen} run={run} picture={picture} standing={standing} selected={selection?.box ?? null} lit={lit} follows={follows} />
        </div>
        <div className="run-timeline">{isExplained && <Timeline run={chosen} automatic={automatic} />}</div>
        {selection && isExplained && (
          <div className="run-inspector">
            <Inspector key={selection.box} chosen={chosen} run={run} selection={selection} standing={standing.data} explanation={explanation.data} ask={setAsked} light={light} />
          </div>
        )}
        <div className="run-bottom">{isExplained && <BottomPane {...lower} detail={run} />}</div>
      </div>
      <div className="run-foot">
        <div className="grow"><TravelBar run={chosen} seq={run.seq} /></div>
        <RunFilterField chosen={chosen} />
      </div>
      {asked && <RunDialog run={run} asked={asked} onClose={() => setAsked(null)} />}
    </div>
  );
}

type PaneProps = {
  chosen: RunChosen; run: RunDetail; selected: string | null; lit: ReadonlySet<string>; follows: number | null;
  picture: ReturnType<typeof usePicture>; standing: ReturnType<typeof useStanding>;
};

function PicturePane({ chosen, run, picture, standing, selected, lit, follows }: PaneProps): ReactElement {
  const isOutline = useChosen().get("view") === "outline";
  const found = useMemo(() => foundBoxes(chosen.q, picture.data, standing.data), [chosen.q, picture.data, standing.data]);
  if (picture.data === undefined) return <NoPicture run={run} error={picture.error} retry={() => void picture.refetch()} />;
  return (
    <>
      {(picture.error ?? standing.error) && <ProblemNote error={picture.error ?? standing.error} />}
      <Picture
        picture={picture.data} standing={standing.data} selected={selected} onSelect={select} lit={lit} found={found} follows={follows}
        isOutline={isOutline} onOutline={(next) => choose({ view: next ? "outline" : null }, { replace: true })}
        onOpen={(box) => void childOf(chosen, box).then((child) => child && navigate(runPath(child)))}
        onLeave={() => run.parent !== null && navigate(runPath(run.parent))}
      />
    </>
  );
}

function NoPicture({ run, error, retry }: { run: RunDetail; error: unknown; retry: () => void }): ReactElement {
  if (run.seq === 0 || (error instanceof Problem && error.status === 404)) {
    return <p className="run-none muted">There is nothing to draw yet: no host has taken {run.id} up. Run its program, or <code>weft serve app.py</code>.</p>;
  }
  return error ? <ProblemNote error={error} retry={retry} /> : <p className="run-none muted">The picture is being laid out…</p>;
}

/** A failed run opens at its failure, unless that would cover what was asked for. Returns what was selected by that and not by a person. */
function useSelectedFailure(chosen: RunChosen, run: RunDetail, pane: Pane): string | null {
  const isDone = useRef(false);
  const isCovering = useNarrow() && pane !== "picture";
  const isWanted = run.status === "failed" && chosen.at === null && !isCovering;
  const [automatic] = useState(() => (isWanted ? run.failure?.box || run.failure?.location || null : null));
  useEffect(() => {
    if (isDone.current) return;
    isDone.current = true;
    if (automatic !== null && chosen.sel === null) choose({ sel: automatic }, { replace: true });
  }, [chosen, automatic]);
  return automatic;
}

function useRunKeys(chosen: RunChosen, run: RunDetail): void {
  const isOutline = useChosen().get("view") === "outline";
  useKeys("Run", [
    { keys: "o", does: "Picture or outline", run: () => choose({ view: isOutline ? null : "outline" }, { replace: true }) },
    { keys: "/", does: "Filter this run", run: () => document.getElementById("run-filter")?.focus() },
    { keys: "Escape", does: "One step back", run: () => stepBack(chosen) },
    { keys: "Backspace", does: "To the run above", run: () => run.parent !== null && navigate(runPath(run.parent)) },
  ]);
}

function stepBack(chosen: RunChosen): void {
  if (document.activeElement?.id === "run-filter") document.getElementById("main")?.focus();
  else if (chosen.sel !== null) select(null);
  else if (chosen.q) choose({ q: null }, { replace: true });
  else if (chosen.at !== null) travel(null);
}
