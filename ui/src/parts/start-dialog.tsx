/** Start a run: workflow, version or tag, its input, id, attributes and delay. Opens the new run. */
import "./start-dialog.css";

import { useState, type FormEvent, type ReactElement } from "react";

import { api, Problem, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { WorkflowView } from "../api/schema";
import { navigate, runPath } from "../shell/address";
import { sayUrgently, toast } from "../shell/notices";
import { Dialog } from "./dialog";
import { Form } from "./form";
import { formFindings } from "./form-findings";
import { schemaForm } from "./form-schema";
import { formToJson, newDraft, type Draft, type FormFinding } from "./form-values";
import { ProblemNote } from "./problem";
import { CopyAs } from "./start-copy";
import { AttributeRows, attributesOf, type AttributeRow } from "./start-attributes";
import { startBody, type Start } from "./start-text";

type Props = {
  workflow?: string;
  /** `@tag` or a version; empty for the newest one that is hosted. */
  version?: string;
  onClose: () => void;
};

const NONE: WorkflowView[] = [];

export default function StartDialog({ workflow = "", version = "", onClose }: Props): ReactElement {
  const asked = useAsked(["workflow-versions"], (signal) => read(api.GET("/api/v1/workflows", { params: { query: { limit: 200 } }, signal })));
  // The form is of what was there first: a server that restarts hosts nothing for a moment, and nothing typed may be lost.
  const [all, setAll] = useState(NONE);
  if (all.length === 0 && asked.data && asked.data.workflows.length > 0) setAll(asked.data.workflows);
  const names = [...new Set(all.filter((one) => one.hosted || one.tags.length > 0).map(({ name }) => name))];
  const [chosen, setChosen] = useState(workflow);
  const [ref, setRef] = useState(version);
  const name = chosen || names[0] || "";
  const own = all.filter((one) => one.name === name);
  const shown = versionOf(own, ref);
  return (
    <Dialog title="Start a run" onClose={onClose} isWide>
      {asked.error !== null && <ProblemNote error={asked.error} retry={() => void asked.refetch()} />}
      {asked.data && names.length === 0 && <p>No process hosts a workflow. Run its program, or <code>weft serve app.py</code>.</p>}
      <div className="start-what">
        <label className="column">Workflow
          <select autoFocus value={name} onChange={(event) => { setChosen(event.target.value); setRef(""); }}>
            {!names.includes(name) && <option value={name}>{name}</option>}
            {names.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>
        <label className="column">Version or tag
          <select value={ref} onChange={(event) => setRef(event.target.value)}>
            <option value="">newest hosted{ref === "" && shown ? ` · ${shown.version.slice(0, 8)}` : ""}</option>
            {own.flatMap((one) => one.tags.map((tag) => <option key={"@" + tag} value={"@" + tag}>@{tag} · {one.version.slice(0, 8)}</option>))}
            {own.map((one) => <option key={one.version} value={one.version}>{one.version.slice(0, 16)}{one.hosted ? "" : " (not hosted)"}</option>)}
          </select>
        </label>
      </div>
      {shown
        ? <StartForm key={name + "\n" + shown.version} name={name} reference={ref} version={shown.version} onClose={onClose} />
        : <div className="buttons"><button type="button" onClick={onClose}>Back</button></div>}
    </Dialog>
  );
}

/** Return the version whose input is asked for. Versions come oldest first. */
function versionOf(own: WorkflowView[], ref: string): WorkflowView | undefined {
  if (ref.startsWith("@")) return own.find(({ tags }) => tags.includes(ref.slice(1)));
  if (ref !== "") return own.find(({ version }) => version === ref);
  return own.findLast(({ hosted }) => hosted) ?? own.at(-1);
}

const ANYTHING = { type: "object" };

function StartForm({ name, reference, version, onClose }: { name: string; reference: string; version: string; onClose: () => void }): ReactElement {
  const asked = useAsked(["workflow-version", name, version], (signal) => read(api.GET("/api/v1/workflows/{name}/versions/{version}", { params: { path: { name, version } }, signal })), { keepPrevious: false });
  if (!asked.data) return asked.error !== null ? <ProblemNote error={asked.error} retry={() => void asked.refetch()} /> : <p className="muted">…</p>;
  return <StartFields name={name} reference={reference} schema={asked.data.input ?? ANYTHING} about={asked.data.description} onClose={onClose} />;
}

type FieldsProps = { name: string; reference: string; schema: unknown; about: string; onClose: () => void };

function StartFields({ name, reference, schema, about, onClose }: FieldsProps): ReactElement {
  const [draft, setDraft] = useState<Draft>(() => newDraft(schema));
  const [id, setId] = useState("");
  const [rows, setRows] = useState<AttributeRow[]>([]);
  const [delay, setDelay] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [unread, setUnread] = useState<FormFinding[]>([]);
  const { value, findings } = formToJson(schemaForm(schema), draft);
  const start: Start = {
    workflow: name, tag: reference.startsWith("@") ? reference.slice(1) : "", version: reference.startsWith("@") ? "" : reference,
    input: asInput(value), id, attributes: attributesOf(rows), delay: Number(delay) || 0,
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setUnread(findings);
    setError(null);
    if (findings.length > 0) return sayUrgently("The input cannot be read yet.");
    setSending(true);
    read(api.POST("/api/v1/runs", { body: startBody(start) })).then(
      (done) => {
        toast(done.created ? `Started ${done.id}` : `${done.id} existed already`);
        onClose();
        navigate(runPath(done.id));
      },
      (problem: unknown) => {
        setError(problem);
        setSending(false);
        sayUrgently(problem instanceof Error ? problem.message : "It was not started.");
      },
    );
  };
  const found = error instanceof Problem ? formFindings(error.details.findings) : [];
  return (
    <form onSubmit={submit}>
      {about && <p className="muted">{about}</p>}
      <Form schema={schema} value={draft} label="Input" findings={[...unread, ...found]} onChange={(changed) => { setDraft(changed); setUnread([]); }} />
      <details className="start-more">
        <summary>Id, attributes, delay</summary>
        <div className="fields">
          <label className="field">Id <span className="muted optional">optional: a start with an id that exists finds that run</span>
            <input value={id} maxLength={500} autoComplete="off" onChange={(event) => setId(event.target.value)} />
          </label>
          <AttributeRows rows={rows} onChange={setRows} />
          <label className="field">Delay in seconds <span className="muted optional">optional</span>
            <input inputMode="decimal" value={delay} aria-invalid={delay !== "" && !(Number(delay) >= 0)} onChange={(event) => setDelay(event.target.value)} />
          </label>
        </div>
      </details>
      {error !== null && <ProblemNote error={found.length > 0 && error instanceof Problem ? error.withoutFindings() : error} />}
      <CopyAs start={start} />
      <div className="buttons">
        <button type="button" onClick={onClose}>Back</button>
        <button className="primary" disabled={isSending || (delay !== "" && !(Number(delay) >= 0))}>Start</button>
      </div>
    </form>
  );
}

/** The input of a run is an object; anything else is sent as it is, for the server to refuse. */
function asInput(value: unknown): Record<string, unknown> {
  return (value ?? {}) as Record<string, unknown>;
}
