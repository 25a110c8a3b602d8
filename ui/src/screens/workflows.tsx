/** Workflows: a row per name, with what it did in the last day. */
import "./workflow.css";

import { useRef, useState, type ReactElement } from "react";

import { api, read } from "../api/client";
import { usePages } from "../api/pages";
import type { WorkflowSummary } from "../api/schema";
import { Rows } from "../parts/rows";
import { MarkWord, Status } from "../parts/state";
import { Age } from "../parts/time";
import { durationText } from "../parts/times";
import { choose, openRunsPath, pathTo, queryText, runPath, useChosen } from "../shell/address";
import { useKeys } from "../shell/keys";
import { Link } from "../shell/link";
import { part } from "../shell/part";
import { useTitle } from "../shell/questions";
import { may, useMe } from "../shell/session";
import type { RunStatus } from "../shell/words";

const StartDialog = part(() => import("../parts/start-dialog"));

export default function Workflows(): ReactElement {
  const text = useChosen().get("q") ?? "";
  const field = useRef<HTMLInputElement>(null);
  const [starting, setStarting] = useState<string | null>(null);
  const mayStart = may(useMe(), "start");
  const found = usePages(["workflow-summaries", text], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/workflow-summaries", { params: { query: { limit: 50, cursor, ...(text ? { q: text } : {}) } }, signal }));
    return { rows: page.workflows, cursor: page.cursor };
  }, 10_000);
  useTitle("Workflows");
  useKeys("Workflows", [
    { keys: "j", does: "Next workflow", run: () => focusRow(1) },
    { keys: "k", does: "Previous workflow", run: () => focusRow(-1) },
    { keys: "/", does: "Filter", run: () => field.current?.focus() },
  ]);
  return (
    <>
      <div className="row">
        <h1>Workflows</h1>
        <input ref={field} type="search" aria-label="Filter the workflows" placeholder="Filter" value={text} onChange={(event) => choose({ q: event.target.value }, { replace: true })} />
      </div>
      <div className="workflow-rows">
      <Rows label="Workflows" head={["workflow", "style", "newest", "tags", "hosted", "open", "last day", "median", "last run", ""]} error={found.error} retry={found.retry} more={found.more} empty={<Nothing text={text} />}>
        {found.rows?.map((one) => (
          <tr key={one.name}>
            <td><Link to={pathTo("workflows", one.name)}>{one.name}</Link>{one.description && <div className="muted cut summary">{one.description.split("\n")[0]}</div>}</td>
            <td>{one.style}</td>
            <td className="mono">{one.newest.slice(0, 8)}{one.versions > 1 && <span className="muted"> of {one.versions}</span>}</td>
            <td>{one.tags.map(({ tag }) => <span key={tag} className="chip">@{tag}</span>)}</td>
            <td>{one.hosted ? <MarkWord mark="done" word="yes" /> : <MarkWord mark="idle" word="no" />}</td>
            <td className="num">{one.open_runs === 0 ? 0 : <Link to={openRunsPath(one.name)}>{one.open_runs}</Link>}</td>
            <td className="num"><Day one={one} /></td>
            <td className="num">{one.median_seconds !== null && durationText(one.median_seconds * 1000)}</td>
            <td>{one.last_run && <span className="last-run"><Status status={one.last_run.status as RunStatus} /> <Link to={runPath(one.last_run.id)} className="mono cut" title={one.last_run.id}><bdi>{one.last_run.id}</bdi></Link> <Age at={one.last_run.created_at} /></span>}</td>
            <td>{mayStart && one.hosted && <button type="button" aria-label={`Start ${one.name}`} onClick={() => setStarting(one.name)}>Start</button>}</td>
          </tr>
        ))}
      </Rows>
      </div>
      {starting !== null && <StartDialog workflow={starting} onClose={() => setStarting(null)} />}
    </>
  );
}

/** Move the focus to the name in the next or the previous row. */
function focusRow(by: 1 | -1): void {
  const names = [...document.querySelectorAll<HTMLElement>(".workflow-rows tbody tr td:first-child a")];
  const here = names.findIndex((name) => name.closest("tr")?.contains(document.activeElement));
  const next = here < 0 ? (by > 0 ? 0 : names.length - 1) : Math.min(Math.max(here + by, 0), names.length - 1);
  names[next]?.focus();
}

function Day({ one }: { one: WorkflowSummary }): ReactElement {
  const more = one.more ? " or more" : "";
  return (
    <>
      {one.day_runs}{more}
      {one.day_failed > 0 && <>, <Link to={"/runs" + queryText({ workflow: one.name, status: "failed", since: "24h" })}>{one.day_failed} failed</Link></>}
    </>
  );
}

function Nothing({ text }: { text: string }): ReactElement {
  if (text) return <p>No workflow has “{text}” in its name. <button type="button" onClick={() => choose({ q: null })}>Clear the filter</button></p>;
  return <p>No process has hosted a workflow on this store yet. Start one: <code>weft serve app.py</code></p>;
}
