/** Schedules: when they fire next, in their own zone, and what they did last. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries, useAsked } from "../../api/queries";
import type { Schedule } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { Rows } from "../../parts/rows";
import { MarkWord } from "../../parts/state";
import { Age } from "../../parts/time";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { may, useMe } from "../../shell/session";
import type { Mark } from "../../shell/words";

type Verb = "pause" | "resume" | "trigger";
const MARKS: Record<Schedule["status"], Mark> = { active: "working", ended: "done", held: "held", paused: "held", removed: "cancelled", undeclared: "waiting" };
const TITLES: Record<Verb, string> = { pause: "Pause", resume: "Resume", trigger: "Fire now" };

export function Schedules(): ReactElement {
  const [doing, setDoing] = useState<{ verb: Verb; name: string } | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const mayAct = may(useMe(), "operate");
  const schedules = usePages(["schedules"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/schedules", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.schedules, cursor: page.cursor };
  });
  return (
    <>
      <Rows label="Schedules" head={["state", "schedule", "starts", "when", "next", "last run", "fired", ""]} error={schedules.error} retry={schedules.retry} more={schedules.more}
        empty={<>No schedule. In code: <code>app.schedule("nightly", report, cron="0 3 * * *")</code></>}>
        {schedules.rows?.flatMap((one) => [
          <tr key={one.name}>
            <td><MarkWord mark={MARKS[one.status]} word={one.status} />{one.reason && <div className="muted">{one.reason}</div>}</td>
            <td className="mono"><button type="button" className="plain" aria-expanded={opened === one.name} onClick={() => setOpened(opened === one.name ? null : one.name)}>{one.name}</button></td>
            <td>{one.workflow}</td>
            <td className="mono">{one.cron ?? `every ${one.every ?? "?"}`} {one.timezone}</td>
            <td>{one.next && <Age at={one.next} />}</td>
            <td className="mono">{one.last_run && <Link to={runPath(one.last_run)}>{one.last_run}</Link>}</td>
            <td className="num">{one.fired}{one.missed > 0 && `, ${one.missed} missed`}</td>
            <td className="acts">
              {mayAct && one.status === "active" && <button type="button" onClick={() => setDoing({ verb: "pause", name: one.name })}>Pause</button>}
              {mayAct && one.status === "paused" && <button type="button" onClick={() => setDoing({ verb: "resume", name: one.name })}>Resume</button>}
              {mayAct && one.status !== "removed" && <button type="button" onClick={() => setDoing({ verb: "trigger", name: one.name })}>Fire now</button>}
            </td>
          </tr>,
          ...(opened === one.name ? [<Details key={one.name + " details"} schedule={one} />] : []),
        ])}
      </Rows>
      {doing && (
        <ActionDialog title={`${TITLES[doing.verb]}: ${doing.name}`} verb={TITLES[doing.verb]} said="Done" isReasonAsked={doing.verb !== "trigger"} onClose={() => setDoing(null)}
          act={(reason) => act(doing.verb, doing.name, reason)} command={(reason) => weftCommand("schedule", [doing.verb, doing.name], [["--reason", reason]])} />
      )}
    </>
  );
}

async function act(verb: Verb, name: string, reason: string): Promise<void> {
  const params = { path: { name } };
  if (verb === "trigger") await read(api.POST("/api/v1/schedules/{name}/trigger", { params, body: {} }));
  else await read(api.POST(`/api/v1/schedules/{name}/${verb}`, { params, body: { reason } }));
  await queries.invalidateQueries({ queryKey: ["schedules"] });
}

function Details({ schedule }: { schedule: Schedule }): ReactElement {
  const { name } = schedule;
  const next = useAsked(["schedules", name, "next"], (signal) => read(api.GET("/api/v1/schedules/{name}/next", { params: { path: { name }, query: { count: 5 } }, signal })));
  return (
    <tr>
      <td />
      <td colSpan={7}>
        <p>If a run is open: {schedule.overlap}. After an outage: {schedule.catch_up}. When clocks change: {schedule.dst}.</p>
        <h3>Next firings, in {schedule.timezone}</h3>
        <ul>{next.data?.times.map((time) => <li key={time.run} className="num">{time.local} {time.note}</li>)}</ul>
      </td>
    </tr>
  );
}
