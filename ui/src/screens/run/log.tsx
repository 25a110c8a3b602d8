/** The log of a run: a line per event or per place, newest last. */
import { useMemo, type ReactElement } from "react";

import type { LogEventView, PlaceRow } from "../../api/schema";
import { Value } from "../../parts/values";
import { Moment } from "../../parts/time";
import { durationText } from "../../parts/times";
import { MARK_SIGNS } from "../../shell/words";
import { placeOfSel, select, selOf, travel, type RunChosen } from "./chosen";
import { useRun } from "./data";
import { eventSource, placeSource } from "./log-data";
import { LogList, type Line } from "./log-list";
import { useSent } from "./sent";

export const LOG_MODES = ["compact", "all", "json"] as const;
export type LogMode = (typeof LOG_MODES)[number];

export function Log({ run, mode }: { run: RunChosen; mode: LogMode }): ReactElement {
  const newest = useRun(run.id).data?.seq ?? 0;
  return mode === "compact" ? <PlaceLines run={run} newest={newest} /> : <EventLines run={run} newest={newest} isJson={mode === "json"} />;
}

type LinesProps = { run: RunChosen; newest: number };

function EventLines({ run, newest, isJson }: LinesProps & { isJson: boolean }): ReactElement {
  const source = useMemo(() => eventSource(run.id, run.q), [run.id, run.q]);
  return (
    <LogList
      source={source} anchor={run.at} newest={newest} sent={useSent(run.id)} filter={run.q}
      lineOf={(event) => eventLine(event, run, isJson)}
      detailOf={isJson ? (event) => <Value value={event} label={`Event ${event.seq}`} /> : undefined}
    />
  );
}

function PlaceLines({ run, newest }: LinesProps): ReactElement {
  const source = useMemo(() => placeSource(run.id, run.q, run.at), [run.id, run.q, run.at]);
  return <LogList source={source} anchor={null} newest={run.at ?? newest} sent={useSent(run.id)} filter={run.q} lineOf={(place) => placeLine(place, run)} />;
}

const FAILURES = /(^|_)(failed|lost|refused|timed_out)$/;

function eventLine(event: LogEventView, run: RunChosen, isJson: boolean): Line {
  const { seq, at, text, box, kind } = event;
  const place = event.place ?? "";
  const isFailure = FAILURES.test(kind);
  return {
    number: seq,
    isAt: seq === run.at,
    isLater: run.at !== null && seq > run.at,
    isSelected: isOf(run.sel, place, box ?? null),
    onChoose: () => place && select(selOf({ place, box: box ?? "" })),
    onGo: () => travel(seq),
    shown: (
      <>
        <span className="log-time"><Moment at={at} /></span>
        <span className="log-sign" aria-hidden="true">{isFailure ? MARK_SIGNS.failed : ""}</span>
        {isJson ? <code className="cut">{kind} {JSON.stringify(event.data)}</code> : <span className={isFailure ? "cut log-failed" : "cut"} title={text}>{text}</span>}
      </>
    ),
  };
}

function placeLine(place: PlaceRow, run: RunChosen): Line {
  const { began, started_at, ended_at, mark, what, kind, failure } = place;
  const took = ended_at == null ? "" : durationText(ended_at - started_at);
  const attempts = place.attempts ?? 1;
  const tries = attempts > 1 ? `attempt ${attempts}${place.attempts_max ? ` of ${place.attempts_max}` : ""}` : "";
  const more = [what && what !== place.place ? `${kind} ${what}` : kind, tries, took, failure || place.why].filter(Boolean).join(" · ");
  return {
    number: began,
    isAt: false,
    isLater: false,
    isSelected: isOf(run.sel, place.place, place.box),
    onChoose: () => select(selOf(place)),
    onGo: () => travel(place.ended ?? began),
    shown: (
      <>
        <span className="log-time"><Moment at={started_at} /></span>
        <span className={`log-sign sign mark-${mark}`} aria-hidden="true">{MARK_SIGNS[mark]}</span>
        <span className="unseen">{mark}</span>
        <span className="cut" title={`${place.place} ${more}`}>{place.place} <span className={mark === "failed" ? "log-failed" : "muted"}>{more}</span></span>
      </>
    ),
  };
}

function isOf(sel: string | null, place: string, box: string | null): boolean {
  return sel !== null && (placeOfSel(sel) === place || sel === box);
}
