/** The parts of a form that hold fields: frames of objects and rows of arrays. */
import { useId, type ReactElement } from "react";

import { findingsBelow, findingsHere } from "./form-findings";
import { About, FieldPart, Optional, type FieldProps } from "./form-fields";
import type { Field } from "./form-schema";
import { clearedDraft, draftAt, emptyDraft, presentDraft, type Draft } from "./form-values";

export function FramePart({ field, draft, onChange, findings, label, isWhole }: FieldProps & { field: Field & { kind: "frame" } }): ReactElement {
  const id = useId();
  const names = field.fields.map(({ name }) => name);
  const about = <About id={id} help={field.help} findings={findingsHere(findings, draft.as === "frame" ? names : [])} />;
  const fields = draft.as === "frame" && field.fields.map(({ name, field: inner }) => (
    <FieldPart
      key={name} field={inner} draft={draftAt(draft, name)} findings={findingsBelow(findings, name)} label={inner.title || name}
      onChange={(changed) => onChange({ ...draft, fields: Object.fromEntries([...Object.entries(draft.fields), [name, changed]]) })}
    />
  ));
  const rest = draft.as === "frame" && Object.keys(draft.rest).length > 0 && (
    <p className="muted">Also kept, though the schema does not name it: <code>{Object.keys(draft.rest).join(", ")}</code></p>
  );
  if (isWhole && draft.as === "frame") return <div className="fields" aria-describedby={id}>{about}{fields}{rest}</div>;
  const isOpen = !field.isRequired || field.mayBeNull;
  return (
    <fieldset className="field frame-field" aria-describedby={id}>
      <legend>{label} <Optional field={field} /></legend>
      {about}
      {draft.as === "frame" ? <div className="fields">{fields}{rest}</div> : null}
      {draft.as === "frame"
        ? isOpen && <button type="button" className="plain" onClick={() => onChange(clearedDraft(field))}>Leave out {label}</button>
        : <button type="button" onClick={() => onChange(presentDraft(field))}>Add {label}</button>}
    </fieldset>
  );
}

const NO_ITEMS: Draft[] = [];

export function RowsPart({ field, draft, onChange, findings, label }: FieldProps & { field: Field & { kind: "rows" } }): ReactElement {
  const id = useId();
  const items = draft.as === "rows" ? draft.items : NO_ITEMS;
  const change = (changed: Draft[]): void => onChange({ as: "rows", items: changed });
  return (
    <fieldset className="field frame-field" aria-describedby={id}>
      <legend>{label} <Optional field={field} /></legend>
      <About id={id} help={field.help} findings={findingsHere(findings, items.map((_, at) => at))} />
      {items.length > 0 && (
        <ol className="rows">
          {items.map((item, at) => (
            <li key={at}>
              <div className="grow">
                <FieldPart
                  field={field.item} draft={item} label={`${field.item.title || label} ${at + 1}`} findings={findingsBelow(findings, at)}
                  onChange={(changed) => change(items.with(at, changed))}
                />
              </div>
              <button type="button" className="plain" aria-label={`Remove row ${at + 1} of ${label}`} onClick={() => change(items.toSpliced(at, 1))}>Remove</button>
            </li>
          ))}
        </ol>
      )}
      <div className="row">
        <button type="button" onClick={() => change([...items, emptyDraft(field.item)])}>Add a row</button>
        {items.length === 0 && <span className="muted">{draft.as === "rows" ? "no rows" : draft.as === "null" ? "null" : "not given"}</span>}
        {draft.as === "rows" && (!field.isRequired || field.mayBeNull) && (
          <button type="button" className="plain" onClick={() => onChange(clearedDraft(field))}>Leave out {label}</button>
        )}
      </div>
    </fieldset>
  );
}
