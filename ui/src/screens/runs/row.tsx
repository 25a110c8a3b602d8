/** One row of the list of runs. */
import { memo, type ReactElement } from "react";

import type { ListedRun } from "../../api/schema";
import { Age, Took } from "../../parts/time";
import { Status } from "../../parts/state";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { attributeText } from "./columns";

export type RowProps = {
  row: ListedRun;
  index: number;
  tag: string;
  now: string;
  columns: string[];
  isMarked: boolean;
  isCurrent: boolean;
  onMark: (id: string) => void;
  onCurrent: (id: string) => void;
};

const VERSION_SHOWN = 8;

export const RunRow = memo(function RunRow({ row, index, tag, now, columns, isMarked, isCurrent, onMark, onCurrent }: RowProps): ReactElement {
  return (
    <tr
      role="row" aria-rowindex={index + 2} aria-current={isCurrent ? "true" : undefined} className={isMarked ? "marked" : undefined}
      onClick={(event) => {
        if (!(event.target instanceof HTMLElement && event.target.closest("a, button, input, label"))) onCurrent(row.id);
      }}
    >
      <td role="cell" className="c-mark"><label className="mark"><input type="checkbox" checked={isMarked} aria-label={`Mark ${row.id}`} onChange={() => onMark(row.id)} /></label></td>
      <td role="cell" className="c-state"><Status status={row.status} /></td>
      <td role="cell" className="c-run cut">
        <Link to={runPath(row.id)} className="mono" data-run={row.id} title={row.id} onFocus={() => onCurrent(row.id)}><bdi>{row.id}</bdi></Link>
      </td>
      <td role="cell" className="c-workflow cut" title={`${row.workflow} ${row.version}`}>
        <bdi>{row.workflow}</bdi> <span className="muted mono">{tag ? "@" + tag : row.version.slice(0, VERSION_SHOWN)}</span>
      </td>
      <td role="cell" className="c-started"><Age at={row.created_at} /></td>
      <td role="cell" className="c-took"><Took from={row.created_at} to={row.ended_at} /></td>
      {columns.map((name) => (
        <td role="cell" key={name} className="c-attribute cut mono" title={attributeText(row, name)}><bdi>{attributeText(row, name)}</bdi></td>
      ))}
      <td role="cell" className="c-now cut" title={now}>{now && <bdi>{now}</bdi>}</td>
      <td role="cell" className="c-changed"><Age at={row.updated_at} /></td>
    </tr>
  );
});

/** Return the first line of how a run failed, or what it waits for. */
export function nowText(row: ListedRun, waits: ReadonlyMap<string, string>): string {
  if (row.fault) return row.fault;
  const { failure } = row;
  if (failure) {
    const message = failure.message.split("\n", 1)[0] ?? "";
    // The message of a failed step already names the step and its error.
    if (failure.type === "StepFailed" && message) return message;
    return `${failure.place ? failure.place + ": " : ""}${failure.type}${message ? ": " + message : ""}`;
  }
  const text = waits.get(row.id) ?? "";
  return text && "waits for " + text;
}
