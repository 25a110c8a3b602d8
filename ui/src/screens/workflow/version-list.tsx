/** The versions of a workflow, newest first. Two of them can be compared. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { ProblemNote } from "../../parts/problem";
import { Age } from "../../parts/time";
import { openRunsPath, pathTo, queryText } from "../../shell/address";
import { Link } from "../../shell/link";
import { counted } from "../../shell/words";

export function VersionList({ name, shown }: { name: string; shown: string }): ReactElement {
  const [marked, setMarked] = useState<string[]>([]);
  const found = usePages(["workflow", name, "versions"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/workflows/{name}", { params: { path: { name }, query: { limit: 20, cursor, all: true } }, signal }));
    return { rows: page.workflows, cursor: page.cursor };
  }, 10_000);
  const toggle = (version: string): void => setMarked(marked.includes(version) ? marked.filter((one) => one !== version) : [...marked.slice(-1), version]);
  const order = found.rows?.map(({ version }) => version) ?? [];
  const [b, a] = [...marked].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  const canCompare = found.rows?.[0]?.style === "graph" && order.length > 1;
  return (
    <section aria-labelledby="versions-title">
      <h2 id="versions-title">Versions</h2>
      {found.error !== null && found.error !== undefined && <ProblemNote error={found.error} retry={found.retry} />}
      <ul className="plain-list">
        {found.rows?.map((one) => (
          <li key={one.version} className="row">
            {canCompare && <input type="checkbox" aria-label={`Compare ${one.version}`} checked={marked.includes(one.version)} onChange={() => toggle(one.version)} />}
            <Link to={pathTo("workflows", name) + queryText({ version: one.version })} className="mono" aria-current={one.version === shown ? "true" : undefined}>{one.version.slice(0, 12)}</Link>
            {one.tags.map((tag) => <span key={tag} className="chip">@{tag}</span>)}
            <span className="muted">{one.hosted ? "hosted" : one.origin}</span>
            {one.open_runs > 0 && <Link to={openRunsPath(name, one.version)}>{counted(one.open_runs, "open run")}</Link>}
            {one.created_at && <Age at={one.created_at} />}
          </li>
        ))}
      </ul>
      {found.more && <span><button type="button" onClick={found.more}>Show more</button></span>}
      {canCompare && (a && b ? <Link to={pathTo("workflows", name, "diff", a, b)}>Compare {a.slice(0, 8)} with {b.slice(0, 8)}</Link> : <span className="muted">Mark two versions to compare them.</span>)}
    </section>
  );
}
