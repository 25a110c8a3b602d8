/** A run that is not there: which store was asked, and runs whose ids begin alike. */
import type { ReactElement } from "react";

import { api, read, type Problem } from "../../api/client";
import { useAsked } from "../../api/queries";
import { Status } from "../../parts/state";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";

const SHORTEST = 1;

export function NotFound({ id, error }: { id: string; error: Problem }): ReactElement {
  const alike = useAsked(["alike", id], (signal) => findAlike(id, signal));
  return (
    <div className="empty">
      <h1>There is no run {id.slice(0, 200)}</h1>
      <p>{error.message} It may have been deleted, or belong to somebody else.</p>
      {(alike.data?.length ?? 0) > 0 && (
        <>
          <h2>Ids that begin alike</h2>
          <ul className="plain-list">{alike.data!.map((run) => <li key={run.id} className="row"><Status status={run.status} /> <Link to={runPath(run.id)}>{run.id}</Link> <span className="muted">{run.workflow}</span></li>)}</ul>
        </>
      )}
      <Link to="/runs">All runs</Link>
    </div>
  );
}

type Found = { id: string; workflow: string; status: Parameters<typeof Status>[0]["status"] };

/** Ask for shorter and shorter beginnings of the id until some run has one. */
async function findAlike(id: string, signal: AbortSignal): Promise<Found[]> {
  for (let size = id.length; size >= SHORTEST; size = Math.floor(size / 2)) {
    const { runs } = await read(api.GET("/api/v1/runs", { params: { query: { prefix: id.slice(0, size), limit: 8 } }, signal }));
    if (runs.length > 0) return runs;
  }
  return [];
}
