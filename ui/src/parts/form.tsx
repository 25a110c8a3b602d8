/** A form made from a JSON Schema. The server is the only judge; its findings are shown at their fields. */
import "./form.css";

import { useId, useMemo, useState, type ReactElement } from "react";

import { FieldPart } from "./form-fields";
import { schemaForm } from "./form-schema";
import { draftAsFields, draftAsJson, type Draft, type FormFinding } from "./form-values";

type Props = {
  schema: unknown;
  /** What is typed: begin with `newDraft(schema)`, read it with `formToJson(schemaForm(schema), value)`. */
  value: Draft;
  onChange: (value: Draft) => void;
  findings?: readonly FormFinding[];
  /** What the form is, for those who hear the page: "Input". */
  label?: string;
};

const NONE: readonly FormFinding[] = [];

export function Form({ schema, value, onChange, findings = NONE, label = "Form" }: Props): ReactElement {
  const field = useMemo(() => schemaForm(schema), [schema]);
  const [unread, setUnread] = useState<{ of: Draft; findings: FormFinding[] } | null>(null);
  const id = useId();
  const isJson = value.as === "json" && field.kind !== "json";
  const turn = (): void => {
    const turned = isJson ? draftAsFields(field, value) : draftAsJson(field, value);
    if (turned.findings.length > 0) setUnread({ of: value, findings: turned.findings });
    else onChange(turned.draft);
  };
  // What kept the form from being turned is shown until something is typed.
  const shown = unread !== null && unread.of === value ? [...findings, ...unread.findings] : findings;
  return (
    <div className="form" role="group" aria-label={label}>
      {field.kind !== "json" && (
        <div className="form-turn">
          <button type="button" className="plain" aria-describedby={id} onClick={turn}>{isJson ? "As a form" : "As JSON"}</button>
          <span id={id} className="unseen">{label}</span>
        </div>
      )}
      <FieldPart field={field} draft={value} onChange={onChange} findings={shown} isWhole label={label} />
    </div>
  );
}
