/** The processes that work on the store. */
import type { ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import type { HostView } from "../../api/schema";
import { MarkWord } from "../../parts/state";
import { Rows } from "../../parts/rows";
import { Age } from "../../parts/time";
import { durationText } from "../../parts/times";

export function Hosts(): ReactElement {
  const hosts = usePages(["hosts"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/hosts", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.hosts, cursor: page.cursor };
  });
  return (
    <Rows label="Hosts" head={["state", "host", "where", "owns", "tasks", "workflows", "since"]} error={hosts.error} retry={hosts.retry} more={hosts.more}
      empty={<>No host performs steps. Start one: <code>weft serve app.py</code></>}>
      {hosts.rows?.map((host) => (
        <tr key={host.host}>
          <td><HostState host={host} /></td>
          <td className="mono">{host.host}{host.here && <div className="muted">answers this page</div>}</td>
          <td className="mono">{host.machine}{host.pid !== null && `:${host.pid}`} <div className="address">{host.address}</div></td>
          <td className="num">{host.runs}</td>
          <td className="num">{host.tasks}</td>
          <td>{host.workflows.join(", ")}</td>
          <td>{host.since && <Age at={host.since} />}</td>
        </tr>
      ))}
    </Rows>
  );
}

function HostState({ host }: { host: HostView }): ReactElement {
  if (host.gone) return <MarkWord mark="failed" word="gone, its runs are taken over" />;
  if (host.silent_seconds > host.lease_seconds / 2) return <MarkWord mark="waiting" word={`silent for ${durationText(host.silent_seconds * 1000)}`} />;
  return <MarkWord mark="done" word="alive" />;
}
