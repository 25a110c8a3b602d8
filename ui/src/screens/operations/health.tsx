/** The store, its size, the work that waits, and the last hour of the host that answers. */
import type { ReactElement } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import { ProblemNote } from "../../parts/problem";
import { Sparkline } from "../../parts/sparkline";
import { Age } from "../../parts/time";
import { durationText } from "../../parts/times";
import { bytesText } from "../../parts/value-text";
import { counted } from "../../shell/words";

export function Health(): ReactElement {
  const status = useAsked(["status"], (signal) => read(api.GET("/api/v1/status", { signal })), { refetchMs: 5000 });
  const series = useAsked(["series"], (signal) => read(api.GET("/api/v1/series", { signal })), { refetchMs: 10_000 });
  const now = status.data;
  return (
    <>
      {status.error && <ProblemNote error={status.error} retry={() => void status.refetch()} />}
      {now && (
        <div className="figures">
          <span className="mono">{now.store}</span>
          {now.size_bytes !== null && <span>{bytesText(now.size_bytes)}</span>}
          <span>schema {now.schema}</span>
          <span>weft {now.version}</span>
          <span>{counted(now.hosts, "host")}{now.gone > 0 && `, ${now.gone} gone`}</span>
          <span>{now.queued_since ? <>oldest task in a queue: <Age at={now.queued_since} /></> : "no task waits in a queue"}</span>
          {now.oldest_seconds >= 1 && <span>work has waited for a slot for {durationText(now.oldest_seconds * 1000)}</span>}
        </div>
      )}
      {now?.trouble && <div className="problem"><strong>The store does not answer</strong><span>{now.trouble}</span></div>}
      {series.data && (
        <div className="figures">
          <Sparkline label="runs/s" values={series.data.runs ?? []} unit="" />
          <Sparkline label="steps/s" values={series.data.steps ?? []} unit="" />
          <Sparkline label="commit p99" values={series.data.commit_p99 ?? []} unit=" ms" />
        </div>
      )}
    </>
  );
}
