/** Run the plan, freeze it into a graph, or copy it. */
import { useState, type FormEvent, type ReactElement } from "react";

import { api, read } from "../../api/client";
import type { PlanView } from "../../api/schema";
import { weftCommand } from "../../parts/command";
import { CommandLine, Dialog } from "../../parts/dialog";
import { ProblemNote } from "../../parts/problem";
import { navigate, pathTo, queryText, runPath } from "../../shell/address";
import { copyText } from "../../shell/notices";
import { useSending } from "../../shell/sending";
import { may, useMe } from "../../shell/session";
import { pythonLines, splitFacts, typedFact, type Asked, type Fact } from "./asked";

export function Actions({ asked, plan }: { asked: Asked; plan: PlanView | undefined }): ReactElement {
  const me = useMe();
  const [open, setOpen] = useState<"run" | "freeze" | null>(null);
  const isReady = plan !== undefined && asked.want.length > 0 && plan.findings.length === 0;
  const isComplete = isReady && Object.keys(plan.missing_facts).length === 0;
  return (
    <span className="row">
      {may(me, "start") && <button type="button" className="primary" disabled={!isReady} onClick={() => setOpen("run")}>Run</button>}
      {may(me, "operate") && !me?.tenant && <button type="button" disabled={!isComplete} onClick={() => setOpen("freeze")}>Freeze</button>}
      <button type="button" disabled={asked.want.length === 0} onClick={() => copyText(pythonLines(asked.want, asked.given))}>Copy as Python</button>
      <button type="button" disabled={asked.want.length === 0} onClick={() => copyText(planCommand(asked))}>Copy as command</button>
      {open === "run" && <RunDialog asked={asked} plan={plan} onClose={() => setOpen(null)} />}
      {open === "freeze" && <FreezeDialog asked={asked} onClose={() => setOpen(null)} />}
    </span>
  );
}

function planCommand(asked: Asked, freeze = ""): string {
  return weftCommand("plan", asked.want, [...asked.given.map(({ name }): [string, string] => ["--given", name]), ["--freeze", freeze]]);
}

function RunDialog({ asked, plan, onClose }: { asked: Asked; plan: PlanView | undefined; onClose: () => void }): ReactElement {
  const open = [...asked.given.filter((fact) => fact.value === undefined).map(({ name }) => name), ...Object.keys(plan?.missing_facts ?? {})];
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [id, setId] = useState("");
  const { error, isSending, send } = useSending();
  const facts: Fact[] = open.map((name) => typedFact(`${name}=${typed[name] ?? ""}`)).filter((fact) => fact !== null);
  const input = { ...splitFacts(asked.given).values, ...splitFacts(facts).values };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = { goals: asked.want, input, ...(id ? { id } : {}) };
    send(async () => navigate(runPath((await read(api.POST("/api/v1/runs", { body }))).id)));
  };
  const words = Object.entries(input).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return (
    <Dialog title={`Run ${asked.want.join(", ")}`} onClose={onClose}>
      <form onSubmit={submit}>
        {asked.given.filter((fact) => fact.value !== undefined).map(({ name, value }) => <p key={name}><code>{name}</code> {JSON.stringify(value)}</p>)}
        {open.map((name) => (
          <label key={name} className="column">{name}
            <input required value={typed[name] ?? ""} onChange={(event) => setTyped({ ...typed, [name]: event.target.value })} />
          </label>
        ))}
        <label className="column">Id of the run (empty: one is made) <input value={id} onChange={(event) => setId(event.target.value)} /></label>
        {error !== null && <ProblemNote error={error} />}
        <CommandLine command={weftCommand("start", ["--goal", asked.want.join(","), ...words], [["--id", id]])} />
        <div className="buttons"><button type="button" onClick={onClose}>Back</button><button className="primary" disabled={isSending}>Run</button></div>
      </form>
    </Dialog>
  );
}

function FreezeDialog({ asked, onClose }: { asked: Asked; onClose: () => void }): ReactElement {
  const [name, setName] = useState("");
  const { error, isSending, send } = useSending();
  const given = asked.given.map((fact) => fact.name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send(async () => {
      const frozen = await read(api.POST("/api/v1/plan/freeze", { body: { name, goals: asked.want, given } }));
      navigate(pathTo("workflows", frozen.workflow) + queryText({ version: frozen.version }));
    });
  };
  return (
    <Dialog title="Freeze the plan" onClose={onClose}>
      <form onSubmit={submit}>
        <p>The plan is stored as a graph with the same steps, which runs without planning.</p>
        <label className="column">Name of the graph <input required autoFocus value={name} onChange={(event) => setName(event.target.value)} /></label>
        {error !== null && <ProblemNote error={error} />}
        <CommandLine command={planCommand(asked, name)} />
        <div className="buttons"><button type="button" onClick={onClose}>Back</button><button className="primary" disabled={isSending}>Freeze</button></div>
      </form>
    </Dialog>
  );
}
