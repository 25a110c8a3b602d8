/** What the run holds at the chosen event: input, state or facts, open work, attributes, output. */
import type { ReactElement } from "react";

import { api, apiUrl, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { StateSection, StateValue } from "../../api/schema";
import { ProblemNote } from "../../parts/problem";
import { bytesText } from "../../parts/value-text";
import { Value } from "../../parts/values";
import { counted } from "../../shell/words";
import type { RunChosen } from "./chosen";
import { runKey } from "./data";

const SHORT_MAX = 200;

export function Data({ run }: { run: RunChosen }): ReactElement {
  const at = run.at === null ? {} : { at: run.at };
  const held = useAsked(runKey(run, "state"), (signal) => read(api.GET("/api/v1/runs/{id}/state", { params: { path: { id: run.id }, query: at }, signal })));
  return (
    <div>
      {held.error && <ProblemNote error={held.error} retry={() => void held.refetch()} />}
      {held.data?.sections.length === 0 && <p className="muted log-none">This run holds nothing yet.</p>}
      <div className="held">
        {held.data?.sections.map((section) => <Part key={section.name} id={run.id} seq={held.data.seq} section={section} />)}
      </div>
    </div>
  );
}

function Part({ id, seq, section }: { id: string; seq: number; section: StateSection }): ReactElement {
  return (
    <section className="held-part" aria-label={section.title}>
      <h2>{section.title}</h2>
      <dl>
        {section.values.map((value) => <Held key={value.name} id={id} seq={seq} value={value} />)}
        {section.removed.map((name) => (
          <div key={name} className="held-value" data-changed="true"><dt className="mono"><del>{name}</del></dt><dd className="changed-word">removed by event {seq}</dd></div>
        ))}
      </dl>
      {(section.left_out ?? 0) > 0 && <p className="muted">{counted(section.left_out ?? 0, "more value")} not shown.</p>}
    </section>
  );
}

/** A short value stands by itself; others can be folded and copied. */
function Shown({ value }: { value: unknown }): ReactElement {
  const isShort = value === null || typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && value.length <= SHORT_MAX);
  return isShort ? <span className={`json ${value === null ? "null" : typeof value}`}>{String(value)}</span> : <Value value={value} />;
}

function Held({ id, seq, value }: { id: string; seq: number; value: StateValue }): ReactElement {
  const isLarge = value.value === null && value.bytes > 4;
  const address = apiUrl(`/runs/${encodeURIComponent(id)}/values/${encodeURIComponent(value.ref)}`);
  return (
    <div className="held-value" data-changed={value.changed}>
      {value.name && <dt className="mono">{value.name}</dt>}
      <dd>
        {value.changed && <span className="changed-word">set by event {seq} </span>}
        {isLarge ? <span className="row"><span className="muted">{bytesText(value.bytes)}</span><a href={address} download={`${value.name || "value"}.json`}>Download</a></span> : <Shown value={value.value} />}
      </dd>
    </div>
  );
}
