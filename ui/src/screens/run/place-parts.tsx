/** The parts of a selected place: its values, its attempts, what decided about it, what it wrote. */
import type { ReactElement } from "react";

import { apiUrl } from "../../api/client";
import type { PlaceDetail, ValueSize } from "../../api/schema";
import { MarkWord } from "../../parts/state";
import { Moment, Took } from "../../parts/time";
import { bytesText } from "../../parts/value-text";
import { Value } from "../../parts/values";
import { chooseTab, select, selOf, travel } from "./chosen";

/** A value, or where a large one can be read. */
export function Held({ run, value, size, none }: { run: string; value: unknown; size: ValueSize | null; none: string }): ReactElement {
  if (value !== null && value !== undefined) return <Value value={value} />;
  if (size === null || size.bytes <= 4) return <p className="muted">{none}</p>;
  const path = apiUrl(`/runs/${encodeURIComponent(run)}/values/${encodeURIComponent(size.ref)}`);
  return <p>{bytesText(size.bytes)} are too many to show here. <a href={path} download="value.json">Download</a></p>;
}

export function Attempts({ detail }: { detail: PlaceDetail }): ReactElement {
  const { attempts, traceback, place, open_attempt: open, undo } = detail;
  return (
    <>
      {attempts.length === 0 && !open && <p className="muted">No failed attempt is recorded for this performance.</p>}
      <ol className="attempts">
        {attempts.map((one) => (
          <li key={one.attempt} value={one.attempt}>
            <div className="row"><MarkWord mark="failed" word={`attempt ${one.attempt}`} /> <Moment at={one.started_at} /> <Took from={one.started_at} to={one.at} /></div>
            <p className="wrap"><bdi>{one.failure}</bdi> {one.where && <code className="muted">{one.where}</code>}</p>
            {one.retry_at && <p className="muted">tried again at <Moment at={one.retry_at} /></p>}
            {one.traceback && one.traceback !== traceback && <details><summary>Traceback</summary><pre className="traceback">{one.traceback}</pre></details>}
          </li>
        ))}
        {open && (
          <li value={open.attempt}>
            <div className="row"><MarkWord mark={place.mark} word={`attempt ${open.attempt}`} /> since <Moment at={open.started_at} />{open.host && <span className="muted">on {open.host}</span>}</div>
          </li>
        )}
      </ol>
      {place.mark === "done" && attempts.length > 0 && <p>✓ attempt {attempts.length + 1} succeeded.</p>}
      {traceback && <details open><summary>Traceback</summary><pre className="traceback">{traceback}</pre></details>}
      {undo && <p><MarkWord mark={undo.mark} word={`undo: ${undo.mark}`} /> <button type="button" className="plain mono" onClick={() => select(selOf(undo))}>{undo.place}</button></p>}
    </>
  );
}

/** The event that led here, and the conditions that were asked afterwards with what they saw. */
export function Verdicts({ detail, light }: { detail: PlaceDetail; light: (arrows: string[]) => void }): ReactElement {
  const { cause, verdicts } = detail;
  return (
    <>
      {cause && <p className="wrap">It began because {cause.text} <button type="button" className="plain muted" onClick={() => travel(cause.seq)}>event {cause.seq}</button></p>}
      {verdicts.length > 0 && (
        <ul className="reasons">
          {verdicts.map((one) => (
            <li key={one.arrow}>
              <button type="button" className="plain line mono" onClick={() => light([one.arrow])}>{one.arrow}</button> {one.taken ? "✓ taken" : "– not taken"}
              {Object.keys(one.seen).length > 0 && <code className="muted wrap"> {Object.entries(one.seen).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ").slice(0, 1000)}</code>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

export function Streams({ detail }: { detail: PlaceDetail }): ReactElement {
  if (detail.streams.length === 0) return <p className="muted">It has written nothing.</p>;
  return <p>It wrote to {detail.streams.map((name) => <code key={name}>{name} </code>)}: see <button type="button" className="plain" onClick={() => chooseTab("output")}>Output</button> below.</p>;
}
