/** Bulk jobs: each is a run with a screen and a log of its own. */
import type { ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { Rows } from "../../parts/rows";
import { Status } from "../../parts/state";
import { Age, Took } from "../../parts/time";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";

export function Jobs(): ReactElement {
  const jobs = usePages(["jobs"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/runs", { params: { query: { workflow: "weft.bulk", all: true, limit: 20, cursor } }, signal }));
    return { rows: page.runs, cursor: page.cursor };
  });
  return (
    <Rows label="Jobs" head={["state", "job", "started", "took"]} error={jobs.error} retry={jobs.retry} more={jobs.more} empty="No bulk job. Mark runs in the list to act on many at once.">
      {jobs.rows?.map((job) => (
        <tr key={job.id}>
          <td><Status status={job.status} /></td>
          <td className="mono"><Link to={runPath(job.id)}>{job.id}</Link></td>
          <td><Age at={job.created_at} /></td>
          <td><Took from={job.created_at} to={job.ended_at} /></td>
        </tr>
      ))}
    </Rows>
  );
}
