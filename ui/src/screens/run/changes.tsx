/** What people changed: patches, pauses, retries, results set by hand, forks from and into; a click goes to the event. */
import type { ReactElement } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { Changes as ChangesAnswer, ChangeView, ForkView } from "../../api/schema";
import { Rows } from "../../parts/rows";
import { Status } from "../../parts/state";
import { Moment } from "../../parts/time";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { travel, type RunChosen } from "./chosen";
import { runKey } from "./data";

export function Changes({ run }: { run: RunChosen }): ReactElement {
  // All changes are listed at any event: those after it are greyed, as in the log.
  const asked = useAsked(runKey({ id: run.id, at: null }, "changes"), (signal) => read(api.GET("/api/v1/runs/{id}/changes", { params: { path: { id: run.id } }, signal })));
  const found = asked.data;
  return (
    <div className="changes">
      <Rows label="Changes of this run" head={["event", "when", "what", "who", "why"]} error={asked.error} retry={() => void asked.refetch()}
        empty="Nobody has changed this run: no patch, pause, retry or fork.">
        {found && [
          ...(found.forked_from ? [<ForkedFrom key="origin" run={found.forked_from.run} seq={found.forked_from.seq} />] : []),
          ...rowsOf(found).map((row) => ("kind" in row
            ? <Change key={`${row.seq}.${row.part ?? 0}`} change={row} at={run.at} />
            : <Fork key={row.run} fork={row} at={run.at} />)),
        ]}
      </Rows>
    </div>
  );
}

function rowsOf(found: ChangesAnswer): (ChangeView | ForkView)[] {
  return [...found.changes, ...found.forks].sort((a, b) => a.seq - b.seq);
}

function Go({ seq }: { seq: number }): ReactElement {
  return <button type="button" className="plain num" title={`Show the run as it stood after event ${seq}`} onClick={() => travel(seq)}>{seq}</button>;
}

function Change({ change, at }: { change: ChangeView; at: number | null }): ReactElement {
  return (
    <tr data-later={at !== null && change.seq > at} aria-current={change.seq === at || undefined}>
      <td><Go seq={change.seq} /></td>
      <td><Moment at={change.at} withDate /></td>
      <td>{(change.rev ?? 0) > 0 && <strong>P{change.rev} </strong>}{change.text}{change.version && <span className="muted mono"> {change.base} → {change.version}</span>}</td>
      <td>{change.by}</td>
      <td>{change.reason}</td>
    </tr>
  );
}

function Fork({ fork, at }: { fork: ForkView; at: number | null }): ReactElement {
  return (
    <tr data-later={at !== null && fork.seq > at}>
      <td><Go seq={fork.seq} /></td>
      <td><Moment at={fork.at} withDate /></td>
      <td>forked into <Link to={runPath(fork.run)} className="mono">{fork.run}</Link> <Status status={fork.status} /></td>
      <td>{fork.by}</td>
      <td>{fork.reason}</td>
    </tr>
  );
}

function ForkedFrom({ run, seq }: { run: string; seq: number }): ReactElement {
  return (
    <tr>
      <td><Go seq={seq} /></td>
      <td />
      <td>forked from <Link to={runPath(run, { at: seq })} className="mono">{run}</Link> after its event {seq}</td>
      <td />
      <td />
    </tr>
  );
}
