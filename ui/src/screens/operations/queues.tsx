/** Queues of shared tasks, and their limits. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries } from "../../api/queries";
import type { QueueView } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { Rows } from "../../parts/rows";
import { Age } from "../../parts/time";
import { may, useMe } from "../../shell/session";

export function Queues(): ReactElement {
  const [limiting, setLimiting] = useState<QueueView | null>(null);
  const mayLimit = may(useMe(), "operate");
  const queues = usePages(["queues"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/queues", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.queues, cursor: page.cursor };
  });
  return (
    <>
      <Rows label="Queues" head={["queue", "waiting", "oldest", "in hand", "limit", "performed by", ""]} error={queues.error} retry={queues.retry} more={queues.more} empty="No queue has tasks, limits or hosts.">
        {queues.rows?.map((queue) => (
          <tr key={queue.queue}>
            <td className="mono">{queue.queue}</td>
            <td className="num">{queue.waiting}</td>
            <td>{queue.since && <Age at={queue.since} />}</td>
            <td className="num">{queue.running}{queue.concurrency !== null && ` of ${queue.concurrency}`}</td>
            <td>{limitText(queue)}</td>
            <td>{queue.performed_by.length > 0 ? queue.performed_by.join(", ") : `nobody performs ${queue.queue}`}</td>
            <td className="acts">{mayLimit && <button type="button" onClick={() => setLimiting(queue)}>Limit</button>}</td>
          </tr>
        ))}
      </Rows>
      <KeyLimits />
      {limiting && <LimitDialog queue={limiting} onClose={() => setLimiting(null)} />}
    </>
  );
}

/** Limits of steps and workflows, with the keys that wait or are full. */
function KeyLimits(): ReactElement {
  const limits = usePages(["limits"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/limits", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.limits, cursor: page.cursor };
  });
  return (
    <Rows label="Limits per key" head={["limit", "key", "waiting", "oldest", "running", "at most"]} error={limits.error} retry={limits.retry} more={limits.more} empty="No step or workflow has a limit.">
      {limits.rows?.flatMap((limit) => [
        <tr key={`${limit.kind} ${limit.name}`}>
          <td className="mono">{limit.kind} {limit.name}</td>
          <td>{limit.key || ""}</td>
          <td className="num">{limit.waiting}</td>
          <td />
          <td className="num">{limit.running}</td>
          <td>{limitText({ ...limit, priority: 0 })}</td>
        </tr>,
        ...limit.keys.filter((key) => key.key !== "" && (key.waiting > 0 || key.full)).slice(0, 20).map((key) => (
          <tr key={`${limit.kind} ${limit.name} ${key.key}`}>
            <td />
            <td className="mono">{key.key}</td>
            <td className="num">{key.waiting}</td>
            <td>{key.since && <Age at={key.since} />}</td>
            <td className="num">{key.running}</td>
            <td>{key.full && "full"}</td>
          </tr>
        )),
      ])}
    </Rows>
  );
}

function limitText(queue: Pick<QueueView, "concurrency" | "rate" | "per_seconds" | "priority"> & { stream?: boolean }): string {
  const parts = [];
  if (queue.concurrency !== null) parts.push(`${queue.concurrency} at once`);
  if (queue.rate !== null) parts.push(`${queue.rate} per ${queue.per_seconds === 1 ? "second" : `${queue.per_seconds} s`}`);
  if (queue.priority !== 0) parts.push(`priority ${queue.priority}`);
  if (queue.stream) parts.push("on a Redis stream");
  return parts.join(", ") || "none";
}

function LimitDialog({ queue, onClose }: { queue: QueueView; onClose: () => void }): ReactElement {
  const [concurrency, setConcurrency] = useState(queue.concurrency === null ? "" : String(queue.concurrency));
  const [rate, setRate] = useState(queue.rate === null ? "" : `${queue.rate}/${queue.per_seconds}`);
  const act = async (): Promise<void> => {
    const [many, per] = rate.split("/");
    const body = {
      priority: queue.priority,
      stream: queue.stream,
      ...(concurrency ? { concurrency: Number(concurrency) } : {}),
      ...(many ? { rate: Number(many), per_seconds: Number(per ?? 1) } : {}),
    };
    await read(api.PUT("/api/v1/queues/{queue}", { params: { path: { queue: queue.queue } }, body }));
    await queries.invalidateQueries({ queryKey: ["queues"] });
  };
  return (
    <ActionDialog title={`Limit ${queue.queue}`} verb="Set the limit" said="The limit is set" isReasonAsked={false} onClose={onClose} act={act}
      command={() => weftCommand("queue", [queue.queue], [["--concurrency", concurrency || "none"], ["--rate", rate ? rate.replace(/^(\d+)$/, "$1/1") + "s" : "none"]])}>
      <label className="column">Tasks at once, over all hosts (empty: no limit)
        <input inputMode="numeric" pattern="[0-9]*" value={concurrency} onChange={(event) => setConcurrency(event.target.value)} />
      </label>
      <label className="column">Tasks per second, or per so many seconds: 20 or 100/60 (empty: no limit)
        <input pattern="[0-9]+(/[0-9.]+)?" value={rate} onChange={(event) => setRate(event.target.value)} />
      </label>
    </ActionDialog>
  );
}
