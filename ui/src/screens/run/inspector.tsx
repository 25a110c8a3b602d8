/** What is selected: its state, its values, its attempts, why it ran, what it wrote. */
import { useMemo, type ReactElement } from "react";

import type { Explanation, PlaceDetail, PlaceRow, RunDetail, StandingView } from "../../api/schema";
import { leadsToRun, markOf, tallyOf, tallyText, titleOf, totalOf } from "../../parts/picture-look";
import { ProblemNote } from "../../parts/problem";
import { MarkWord } from "../../parts/state";
import { Moment, Took } from "../../parts/time";
import { choose, runPath, useChosen } from "../../shell/address";
import { Link } from "../../shell/link";
import { select, selOf, type RunChosen } from "./chosen";
import type { Asked } from "./dialogs";
import { momentOf, PlaceList } from "./place-list";
import { Attempts, Held, Streams, Verdicts } from "./place-parts";
import { usePlace, usePlacesOf, type Selection } from "./selection";
import { WhyLine } from "./why";

type Props = {
  chosen: RunChosen;
  run: RunDetail;
  selection: Selection;
  standing: StandingView | undefined;
  explanation: Explanation | undefined;
  ask: (asked: Asked) => void;
  light: (arrows: string[]) => void;
};

const PARTS = [["in", "In"], ["out", "Out"], ["attempts", "Attempts"], ["why", "Why"], ["output", "Output"]] as const;
type Part = (typeof PARTS)[number][0];

export function Inspector(props: Props): ReactElement {
  const { chosen, selection, standing } = props;
  const { box, drawn } = selection;
  const tally = tallyOf(standing?.boxes[box]);
  const isMany = totalOf(tally) > 1;
  const only = usePlacesOf(chosen, box, []);
  const first = only.data?.pages[0]?.places[0];
  const place = selection.place ?? (isMany ? null : (first ?? null));
  const title = drawn ? titleOf(drawn) : box;
  return (
    <section className="inspector" aria-label={`Selected: ${title.slice(0, 100)}`}>
      <div className="inspector-head">
        <h2 className="cut" title={title}><bdi>{title.slice(0, 200)}</bdi></h2>
        <span className="grow" />
        <button type="button" className="plain" onClick={() => select(null)} aria-label="Close the selection">✕</button>
      </div>
      {selection.place && isMany && <button type="button" className="plain back" onClick={() => select(box)}>‹ all {totalOf(tally).toLocaleString("en")} places of <bdi>{title.slice(0, 60)}</bdi></button>}
      {drawn?.subtitle && !place && <code className="muted cut">{drawn.subtitle.slice(0, 200)}</code>}
      {only.error && <ProblemNote error={only.error} retry={() => void only.refetch()} />}
      {place ? <PlacePart key={place.number} {...props} row={place} /> : <BoxPart {...props} isMany={isMany} text={tallyText(tally)} />}
    </section>
  );
}

function BoxPart(props: Props & { isMany: boolean; text: string }): ReactElement {
  const { chosen, selection, standing, isMany } = props;
  const mark = markOf(standing, selection.box);
  return (
    <>
      <div className="row"><MarkWord mark={mark} /> {isMany && <span className="num counts">{props.text}</span>}</div>
      {isMany ? <PlaceList chosen={chosen} box={selection.box} standing={standing} /> : <p className="muted">{mark === "skipped" ? "It did not run." : "It has not run yet."}</p>}
      {!isMany && selection.drawn?.tip && <pre className="muted">{selection.drawn.tip.slice(0, 4000)}</pre>}
      <Reasons {...props} />
    </>
  );
}

function PlacePart(props: Props & { row: PlaceRow }): ReactElement {
  const { chosen, row, standing } = props;
  const detail = usePlace(chosen, row);
  const part = useChosen().get("part");
  const shown: Part = PARTS.find(([name]) => name === part)?.[0] ?? (row.failure ? "attempts" : "in");
  const now = detail.data?.place ?? row;
  return (
    <>
      <PlaceFacts row={now} until={momentOf(chosen, standing)} />
      <div role="tablist" aria-label="Parts of the place" className="tabs">
        {PARTS.map(([name, word]) => (
          <button key={name} type="button" role="tab" id={`part-${name}`} aria-selected={shown === name} aria-controls="part" onClick={() => choose({ part: name }, { replace: true })}>
            {word}{name === "attempts" && (now.attempts ?? 1) > 1 ? ` ${now.attempts}` : ""}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="part" aria-labelledby={`part-${shown}`} className="part" tabIndex={0}>
        {detail.error && <ProblemNote error={detail.error} retry={() => void detail.refetch()} />}
        {detail.data ? <PartShown {...props} detail={detail.data} part={shown} /> : !detail.error && <p className="muted">…</p>}
      </div>
      <PlaceActions {...props} />
    </>
  );
}

/** `until` is the moment that is shown; null for now. */
function PlaceFacts({ row, until }: { row: PlaceRow; until: string | null }): ReactElement {
  return (
    <div className="column facts">
      <div className="row">
        <MarkWord mark={row.mark} />
        <span>{row.kind}{row.what && ` ${row.what.slice(0, 200)}`}</span>
        {(row.attempts_max ?? 0) > 1 && <span className="muted">attempt {row.attempts ?? 1} of {row.attempts_max}</span>}
      </div>
      <div className="row muted"><code className="wrap">{row.place}</code>{row.branch !== undefined && row.branch !== null && <span>branch {row.branch}</span>}</div>
      <div className="row">
        <Moment at={row.started_at} />{row.ended_at ? <>– <Moment at={row.ended_at} /></> : null} <span>(<Took from={row.started_at} to={row.ended_at ?? until} />)</span>
        {row.due_at ? <span className="muted">due <Moment at={row.due_at} withDate /></span> : null}
      </div>
      {row.failure && <p className="refused wrap"><bdi>{row.failure}</bdi></p>}
      {row.why && <p className="muted wrap">{row.why}</p>}
      {row.child && <p>{leadsToRun(row.kind) ? "Its run" : "Run"}: <Link to={runPath(row.child)}>{row.child}</Link></p>}
    </div>
  );
}

function PartShown(props: Props & { detail: PlaceDetail; part: Part }): ReactElement {
  const { detail, part, run } = props;
  switch (part) {
    case "in": return <Held run={run.id} value={detail.input} size={detail.input_size} none="It has no input." />;
    case "out": return detail.place.mark === "done"
      ? <Held run={run.id} value={detail.output} size={detail.output_size} none="null" />
      : <p className="muted">It has no result{detail.place.ended ? "." : " yet."}</p>;
    case "attempts": return <Attempts detail={detail} />;
    case "why": return <><Verdicts detail={detail} light={props.light} /><Reasons {...props} /></>;
    case "output": return <Streams detail={detail} />;
    default: return part satisfies never;
  }
}

/** The sentences of the explanation that are about the selected box. */
function Reasons({ explanation, selection, light }: Props): ReactElement {
  const lines = useMemo(
    () => (explanation?.sections ?? []).flatMap((section) => section.lines).filter((line) => line.boxes?.includes(selection.box)),
    [explanation, selection.box],
  );
  if (lines.length === 0) return <p className="muted">Nothing decided about it: it came in its turn.</p>;
  return <ul className="reasons">{lines.slice(0, 100).map((line, at) => <li key={at}><WhyLine line={line} light={light} /></li>)}</ul>;
}

function PlaceActions({ chosen, run, row, ask }: Props & { row: PlaceRow }): ReactElement {
  const { fork, retry } = run.actions;
  return (
    <div className="row actions">
      <button type="button" disabled={!fork.allowed} title={fork.why_not || undefined} onClick={() => ask({ action: "fork", before: row.place })}>Fork here</button>
      {chosen.at === null && (
        <button type="button" disabled={!retry.allowed} title={retry.why_not || undefined} onClick={() => ask({ action: "retry", place: row.place })}>Retry from here</button>
      )}
      {chosen.sel !== selOf(row) && row.place !== chosen.sel && <button type="button" className="plain" onClick={() => select(selOf(row))}>Select this place</button>}
    </div>
  );
}
