/** The values of two runs side by side, at the box that is selected, else everywhere. */
import type { ReactElement } from "react";

import type { ChangedValue, Difference } from "../../api/schema";

type Props = { a: string; b: string; changed: Difference[]; selected: string | null };

const SHOWN = 100;
const TEXT_MAX = 4000;

export function Differences({ a, b, changed, selected }: Props): ReactElement {
  const own = selected === null ? changed : changed.filter(({ place }) => isAt(place, selected));
  const shown = own.slice(0, SHOWN);
  const more = own.length - shown.length;
  return (
    <section aria-label="Differences">
      <h2>{selected === null ? "Differences" : `Differences at ${selected.slice(0, 80)}`}</h2>
      {shown.length === 0 && <p className="muted">{selected === null ? "There are none." : "Nothing differs there but times."}</p>}
      {shown.map((one, at) => (
        <div key={at} className="difference">
          <h3><code>{one.place || "the run"}</code> <span className="muted">{one.aspect}</span></h3>
          <table className="rows">
            <thead><tr><th scope="col">where</th><th scope="col">A: {a}</th><th scope="col">B: {b}</th></tr></thead>
            <tbody>{(one.changes ?? []).map((change, index) => <Change key={index} change={change} />)}</tbody>
          </table>
        </div>
      ))}
      {more > 0 && <p className="muted">{more.toLocaleString("en")} more: <code>weft diff {a} {b}</code></p>}
    </section>
  );
}

/** Whether a place belongs to a box: its own text, a visit ("a (2)"), a branch ("a[3]", "a/~3/b") or a round of it. */
export function isAt(place: string, box: string): boolean {
  const plain = place.replace(/ \(\d+\)$/, "").replace(/\[[^\]]*\]/g, "");
  return plain === box || plain.split("/").filter((part) => !part.startsWith("~") && !/^\d+$/.test(part)).map((part) => part.split("#")[0]).join("/") === box;
}

function Change({ change }: { change: ChangedValue }): ReactElement {
  return <tr><td data-title="where"><code>{change.pointer || "whole"}</code></td><td data-title="A"><Shown value={change.a} /></td><td data-title="B"><Shown value={change.b} /></td></tr>;
}

function Shown({ value }: { value: unknown }): ReactElement {
  if (value === undefined) return <span className="muted">not there</span>;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return <pre>{text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${text.length.toLocaleString("en")} characters)` : text}</pre>;
}
