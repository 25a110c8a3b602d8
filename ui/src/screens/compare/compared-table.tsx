/** The boxes of two runs: how each stands, how long it took, and its first difference. */
import type { ReactElement } from "react";

import type { BoxDifference, BoxSide } from "../../api/schema";
import { MarkWord } from "../../parts/state";
import { durationText } from "../../parts/times";
import { noteOf } from "./notes";

type Props = { a: string; b: string; boxes: BoxDifference[]; selected: string | null; onSelect: (box: string | null) => void };

const ROWS = 300;

export function ComparedTable({ a, b, boxes, selected, onSelect }: Props): ReactElement {
  const rows = boxes.filter(({ box }) => box !== "");
  const first = [...rows].sort((one, other) => Number(noteOf(other) !== null) - Number(noteOf(one) !== null)).slice(0, ROWS);
  return (
    <table className="rows" aria-rowcount={rows.length + 1}>
      <caption className="unseen">Boxes of {a} (A) and {b} (B), those that differ first</caption>
      <thead><tr><th scope="col">box</th><th scope="col">A</th><th scope="col">B</th><th scope="col">took A</th><th scope="col">took B</th><th scope="col">first difference</th></tr></thead>
      <tbody>
        {first.map((box) => (
          <tr key={box.box} aria-selected={box.box === selected}>
            <th scope="row"><button type="button" className="plain mono cut" onClick={() => onSelect(box.box)}>{box.box.slice(0, 80)}</button></th>
            <td data-title="A"><Side side={box.a} /></td><td data-title="B"><Side side={box.b} /></td>
            <td data-title="took A" className="num">{tookText(box.a)}</td><td data-title="took B" className="num">{tookText(box.b)}</td>
            <td data-title="first difference">{noteOf(box)?.text ?? <span className="muted">same</span>}{box.first && <span className="muted"> {box.first.aspect}</span>}</td>
          </tr>
        ))}
        {rows.length > first.length && <tr><td colSpan={6} className="muted">{(rows.length - first.length).toLocaleString("en")} more boxes are the same</td></tr>}
      </tbody>
    </table>
  );
}

function Side({ side }: { side: BoxSide | null }): ReactElement {
  if (side === null) return <span className="muted">not there</span>;
  return <><MarkWord mark={side.mark} />{side.times > 1 && <span className="muted num"> ×{side.times.toLocaleString("en")}</span>}</>;
}

function tookText(side: BoxSide | null): string {
  return side === null || side.took_ms === null ? "" : durationText(side.took_ms);
}
