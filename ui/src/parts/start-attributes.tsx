/** Attributes of a new run: names and values. A value is JSON if it can be read as JSON, else text. */
import type { ReactElement } from "react";

export type AttributeRow = { name: string; value: string };

export function attributesOf(rows: readonly AttributeRow[]): Record<string, unknown> {
  return Object.fromEntries(rows.filter(({ name }) => name.trim() !== "").map(({ name, value }) => [name.trim(), valueOf(value)]));
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function AttributeRows({ rows, onChange }: { rows: AttributeRow[]; onChange: (rows: AttributeRow[]) => void }): ReactElement {
  const change = (at: number, changes: Partial<AttributeRow>): void => onChange(rows.with(at, { ...rows[at]!, ...changes }));
  return (
    <fieldset className="field">
      <legend>Attributes <span className="muted optional">optional: by them runs are found</span></legend>
      {rows.map((row, at) => (
        <div key={at} className="row nowrap">
          <input className="grow" aria-label={`Name of attribute ${at + 1}`} placeholder="customer" value={row.name} onChange={(event) => change(at, { name: event.target.value })} />
          <input className="grow" aria-label={`Value of attribute ${at + 1}`} placeholder="7" value={row.value} onChange={(event) => change(at, { value: event.target.value })} />
          <button type="button" className="plain" aria-label={`Remove attribute ${at + 1}`} onClick={() => onChange(rows.toSpliced(at, 1))}>Remove</button>
        </div>
      ))}
      <span><button type="button" onClick={() => onChange([...rows, { name: "", value: "" }])}>Add an attribute</button></span>
    </fieldset>
  );
}
