/** The same start as Python, as a command and as curl. */
import { useState, type ReactElement } from "react";

import { basePath } from "../shell/address";
import { copyText } from "../shell/notices";
import { startAsCommand, startAsCurl, startAsPython, type Start } from "./start-text";

const FORMS = ["Python", "command", "curl"] as const;

export function CopyAs({ start }: { start: Start }): ReactElement {
  const [form, setForm] = useState<(typeof FORMS)[number]>("Python");
  const url = location.origin + basePath();
  const text = form === "Python" ? startAsPython(start, url) : form === "command" ? startAsCommand(start) : startAsCurl(start, url);
  return (
    <details>
      <summary>Copy as Python, command, curl</summary>
      <div className="column">
        <div className="row" role="group" aria-label="Copy as">
          {FORMS.map((one) => <button key={one} type="button" className="chip" aria-pressed={one === form} onClick={() => setForm(one)}>{one}</button>)}
          <span className="grow" />
          <button type="button" onClick={() => copyText(text)}>Copy</button>
        </div>
        <pre className="command" tabIndex={0} aria-label={`The start as ${form}`}>{text}</pre>
      </div>
    </details>
  );
}
