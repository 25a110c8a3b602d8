/** The fields of a form: one part for each kind. */
import { useId, type ReactElement, type ReactNode } from "react";

import { FramePart, RowsPart } from "./form-groups";
import { said } from "./form-findings";
import type { Field } from "./form-schema";
import { clearedDraft, draftAsFields, type Draft, type FormFinding } from "./form-values";
import { joinMoment, localZone, splitMoment } from "./moments";

export type FieldProps = {
  field: Field;
  draft: Draft;
  onChange: (draft: Draft) => void;
  findings: readonly FormFinding[];
  label: string;
  isWhole?: boolean;
};

const RADIOS_MAX = 5;

export function FieldPart(props: FieldProps): ReactElement {
  const { field, draft } = props;
  if (draft.as === "json" || field.kind === "json") return <JsonPart {...props} />;
  switch (field.kind) {
    case "text": return <TextPart {...props} isLong={field.isLong} />;
    case "number": return <TextPart {...props} isLong={false} mode={field.isInteger ? "numeric" : "decimal"} />;
    case "check": return <CheckPart {...props} />;
    case "one": return <OnePart {...props} field={field} />;
    case "moment": return <MomentPart {...props} field={field} />;
    case "rows": return <RowsPart {...props} field={field} />;
    case "frame": return <FramePart {...props} field={field} />;
    default: return field satisfies never;
  }
}

type Ids = { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined; "aria-required": boolean | undefined };

/** The label above a field, its help below it, and what is wrong with it. */
function Labelled({ field, findings, label, children }: Omit<FieldProps, "draft" | "onChange"> & { children: (ids: Ids) => ReactNode }): ReactElement {
  const id = useId();
  const isMarked = field.help !== "" || findings.length > 0;
  const ids: Ids = {
    id, "aria-describedby": isMarked ? id + "about" : undefined, "aria-invalid": findings.length > 0 || undefined,
    "aria-required": isMust(field) || undefined,
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label} <Optional field={field} /></label>
      {children(ids)}
      <About id={id + "about"} help={field.help} findings={findings.map(said)} />
    </div>
  );
}

function isMust(field: Field): boolean {
  return field.isRequired && !field.mayBeNull && field.kind !== "check";
}

export function Optional({ field }: { field: Field }): ReactElement | null {
  return field.isRequired && !field.mayBeNull ? null : <span className="muted optional">optional</span>;
}

export function About({ id, help, findings }: { id: string; help: string; findings: readonly string[] }): ReactElement | null {
  if (help === "" && findings.length === 0) return null;
  return (
    <div id={id} className="field-about">
      {findings.map((finding) => <p key={finding} className="finding"><span aria-hidden="true">✗ </span>{finding}</p>)}
      {help !== "" && <p className="muted">{help}</p>}
    </div>
  );
}

function TextPart({ isLong, mode, ...props }: FieldProps & { isLong: boolean; mode?: "numeric" | "decimal" }): ReactElement {
  const { field, draft, onChange } = props;
  const text = draft.as === "text" ? draft.text : "";
  // A default of "" or an empty text from JSON stays what it is until something is typed.
  const change = (typed: string): void => onChange(typed === "" ? clearedDraft(field) : { as: "text", text: typed });
  const placeholder = draft.as === "text" && text === "" && field.kind === "text" ? "(empty text)" : undefined;
  return (
    <Labelled {...props}>
      {(ids) => isLong
        ? <textarea {...ids} rows={4} value={text} placeholder={placeholder} onChange={(event) => change(event.target.value)} />
        : <input {...ids} type="text" inputMode={mode} autoComplete="off" value={text} placeholder={placeholder} onChange={(event) => change(event.target.value)} />}
    </Labelled>
  );
}

function CheckPart({ field, draft, onChange, findings, label }: FieldProps): ReactElement {
  const id = useId();
  return (
    <div className="field">
      <div className="row nowrap">
        <input
          id={id} type="checkbox" checked={draft.as === "check" && draft.isOn} aria-describedby={id + "about"} aria-invalid={findings.length > 0 || undefined}
          onChange={(event) => onChange({ as: "check", isOn: event.target.checked })}
        />
        <label htmlFor={id}>{label}</label>
      </div>
      <About id={id + "about"} help={field.help} findings={findings.map(said)} />
    </div>
  );
}

function OnePart({ field, ...props }: FieldProps & { field: Field & { kind: "one" } }): ReactElement {
  const { draft, onChange, findings, label } = props;
  const id = useId();
  const at = draft.as === "one" ? draft.at : -1;
  const isOpen = !field.isRequired || field.mayBeNull;
  if (field.options.length > RADIOS_MAX) {
    return (
      <Labelled field={field} {...props}>
        {(ids) => (
          <select {...ids} value={at} onChange={(event) => onChange(Number(event.target.value) < 0 ? clearedDraft(field) : { as: "one", at: Number(event.target.value) })}>
            {(isOpen || at < 0) && <option value={-1}>{isOpen ? "none" : "choose"}</option>}
            {field.options.map((option, index) => <option key={index} value={index}>{option.label}</option>)}
          </select>
        )}
      </Labelled>
    );
  }
  return (
    <fieldset className="field radios" aria-describedby={id + "about"}>
      <legend>{label} <Optional field={field} /></legend>
      <div className="row">
        {field.options.map((option, index) => (
          <label key={index} className="radio"><input type="radio" name={id} checked={at === index} onChange={() => onChange({ as: "one", at: index })} /> {option.label}</label>
        ))}
        {isOpen && (
          <label className="radio"><input type="radio" name={id} checked={at < 0} onChange={() => onChange(clearedDraft(field))} /> <span className="muted">none</span></label>
        )}
      </div>
      <About id={id + "about"} help={field.help} findings={findings.map(said)} />
    </fieldset>
  );
}

function MomentPart({ field, ...props }: FieldProps & { field: Field & { kind: "moment" } }): ReactElement {
  const { draft, onChange, label } = props;
  const text = draft.as === "text" ? draft.text : "";
  const parts = splitMoment(text, field.withTime);
  const write = (typed: string): void => onChange(typed === "" ? clearedDraft(field) : { as: "text", text: typed });
  // Times that a browser's field cannot hold, such as those with microseconds, are typed as text.
  if (parts === null) return <TextPart field={field} {...props} isLong={false} />;
  if (!field.withTime) {
    return <Labelled field={field} {...props}>{(ids) => <input {...ids} type="date" value={parts.local} onChange={(event) => write(event.target.value)} />}</Labelled>;
  }
  const here = localZone(parts.local);
  const zone = text === "" ? here : parts.zone;
  const zones = [...new Set([here, "Z", zone])];
  return (
    <Labelled field={field} {...props}>
      {(ids) => (
        <div className="row">
          <input {...ids} type="datetime-local" step={1} value={parts.local} onChange={(event) => {
            const local = event.target.value;
            write(local === "" ? "" : joinMoment(local, text === "" ? localZone(local) : zone));
          }} />
          <select aria-label={`Zone of ${label}`} value={zone} disabled={parts.local === ""} onChange={(event) => write(joinMoment(parts.local, event.target.value))}>
            {zones.map((one) => <option key={one} value={one}>{one === "Z" ? "UTC" : one === "" ? "no zone" : "UTC" + one}</option>)}
          </select>
        </div>
      )}
    </Labelled>
  );
}

/** A field that is typed as JSON, with its schema beside it. */
function JsonPart({ isWhole, ...props }: FieldProps): ReactElement {
  const { field, draft, onChange, findings } = props;
  const text = draft.as === "json" ? draft.text : "";
  const lines = Math.min(isWhole ? 24 : 10, Math.max(isWhole ? 8 : 3, text.split("\n").length + 1));
  const back = draft.as === "json" && field.kind !== "json" && !isWhole ? fieldsOf(field, draft) : null;
  return (
    <div className="json-field">
      <Labelled {...props} findings={findings}>
        {(ids) => (
          <textarea
            {...ids} className="mono" rows={lines} spellCheck={false} value={text} placeholder="JSON"
            onChange={(event) => onChange(field.kind === "json" && event.target.value.trim() === "" ? clearedDraft(field) : { as: "json", text: event.target.value })}
          />
        )}
      </Labelled>
      {back !== null && <button type="button" className="plain" onClick={() => onChange(back)}>As a field</button>}
      {field.schema !== undefined && field.schema !== true && (
        <details>
          <summary>Schema</summary>
          <pre tabIndex={0} aria-label={`Schema of ${props.label}`}>{JSON.stringify(field.schema, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

/** Return the draft of a field whose value was typed as JSON and now fits it; else null. */
function fieldsOf(field: Field, draft: Draft): Draft | null {
  const { draft: turned } = draftAsFields(field, draft);
  return turned.as === "json" ? null : turned;
}
