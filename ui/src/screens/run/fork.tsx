/** Fork a run: from which point, with which values, with which version; and what would happen. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import type { NewFork, RunDetail } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { navigate, runPath } from "../../shell/address";
import { parseBody } from "./dialogs";
import { DryRunNote, useDryRun } from "./dry-run";
import { forkBody, type Point, type Typed } from "./fork-body";

type Props = { run: RunDetail; before: string | undefined; at: number | undefined; onClose: () => void };

/** `before` is the text of a place, or "failure" for the work whose failure ended the run. */
export function ForkDialog({ run, before, at, onClose }: Props): ReactElement {
  const isFailure = before === "failure" && run.failure !== null;
  const place = before !== undefined && !isFailure ? before : "";
  const points: { point: Point; word: string }[] = [
    ...(at === undefined ? [] : [{ point: "at" as const, word: `after event ${at}` }]),
    ...(place ? [{ point: "before" as const, word: `before ${place}` }, { point: "after" as const, word: `after ${place}` }] : []),
    ...(run.failure ? [{ point: "failure" as const, word: "before what failed began" }] : []),
    { point: "start", word: "at the beginning" },
  ];
  const first = isFailure ? "failure" : points[0]!.point;
  const [typed, setTyped] = useState<Typed>({ point: first, place, at: at ?? 0, input: "", result: "", to: "", id: "", effects: "perform" });
  const change = (changes: Partial<Typed>): void => setTyped({ ...typed, ...changes });
  const [input, result] = [parseBody(typed.input), parseBody(typed.result)];
  const body = forkBody(typed);
  const dry = useDryRun(run.id, "fork", "problem" in body ? null : body);
  const act = async (reason: string): Promise<void> => {
    if ("problem" in body) throw new Error(body.problem);
    const made = await read(api.POST("/api/v1/runs/{id}/fork", { params: { path: { id: run.id } }, body: { ...(body as NewFork), reason } }));
    if ("id" in made) navigate(runPath(made.id));
  };
  return (
    <ActionDialog title={`Fork ${run.id}`} verb="Fork" said="Forked" command={(reason) => commandOf(run.id, typed, reason)} act={act} onClose={onClose}>
      <p>A new run shares the past of this one up to a point, and goes on from there. This one stays as it is.</p>
      <label className="column">From
        <select value={typed.point} onChange={(event) => change({ point: event.target.value as Point })}>
          {points.map(({ point, word }) => <option key={point} value={point}>{word}</option>)}
        </select>
      </label>
      <Json label="Arguments of the run that change, as a JSON object" text={typed.input} sample={JSON.stringify(run.input)} problem={"problem" in input ? input.problem : ""} onChange={(text) => change({ input: text })} />
      {place && <Json label={`Result of ${place} to use instead, as JSON`} text={typed.result} sample="performed by the fork" problem={"problem" in result ? result.problem : ""} onChange={(text) => change({ result: text })} />}
      <div className="row">
        <label className="column grow">Version or tag<input value={typed.to} placeholder={`as it is: ${run.version.slice(0, 12)}`} onChange={(event) => change({ to: event.target.value })} /></label>
        <label className="column grow">Id<input value={typed.id} placeholder="made by the server" onChange={(event) => change({ id: event.target.value })} /></label>
      </div>
      <label className="column">Work that the original has performed
        <select value={typed.effects} onChange={(event) => change({ effects: event.target.value as Typed["effects"] })}>
          <option value="perform">is performed again</option>
          <option value="reuse">is kept if its input is the same</option>
          <option value="none">is only replayed</option>
        </select>
      </label>
      {"problem" in body ? <p className="refused">{body.problem}</p> : <DryRunNote {...dry} />}
    </ActionDialog>
  );
}

type JsonProps = { label: string; text: string; sample: string; problem: string; onChange: (text: string) => void };

function Json({ label, text, sample, problem, onChange }: JsonProps): ReactElement {
  return (
    <label className="column">{label}
      <textarea rows={text ? 4 : 2} className="mono" value={text} placeholder={sample.slice(0, 300)} aria-invalid={problem !== ""} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

function commandOf(id: string, typed: Typed, reason: string): string {
  const body = forkBody(typed);
  const known = "problem" in body ? {} : body;
  const pairs = (option: string, values: Record<string, unknown> | undefined): [string, string][] =>
    Object.entries(values ?? {}).map(([name, value]) => [option, `${name}=${JSON.stringify(value)}`]);
  const options: [string, string][] = [
    ["--at", String(known.at ?? "")], ["--before", known.before ?? ""], ["--after", known.after ?? ""],
    ...pairs("--input", known.input), ...pairs("--set", known.set), ["--to", typed.to],
    ["--effects", typed.effects === "perform" ? "" : typed.effects], ["--id", typed.id], ["--reason", reason],
  ];
  return weftCommand("fork", [id], options) + (known.failure ? " --failure" : "");
}
