/** The filter above the list: states as chips, the rest as fields, and all of it as text. */
import { useId, useRef, useState, type FormEvent, type ReactElement } from "react";

import { Sign } from "../../parts/state";
import { STATUS_MARKS, STATUSES, statusWord, type RunStatus } from "../../shell/words";
import type { Count } from "./counts";
import { isEmpty, NO_FILTER, STYLES, WAITS, whyNot, type RunFilter, type SingleKey } from "./filter";
import { filterText, parseFilter } from "./filter-text";
import type { WorkflowNames } from "./names";

type Change = (filter: RunFilter) => void;
type Props = { filter: RunFilter; onChange: Change; counts: ReadonlyMap<string, Count> | undefined; names: WorkflowNames };

const ALWAYS: RunStatus[] = ["running", "failed", "held", "completed"];
const SINCE: [string, string][] = [["", "any time"], ["15m", "15 minutes"], ["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];

export function StatusChips({ filter, onChange, counts }: Omit<Props, "names">): ReactElement {
  const shown = STATUSES.filter((status) => filter.status.includes(status) || (counts ? (counts.get(status)?.count ?? 0) > 0 : ALWAYS.includes(status)));
  const turn = (status: RunStatus): void => {
    const isOn = filter.status.includes(status);
    onChange({ ...filter, status: isOn ? filter.status.filter((one) => one !== status) : [...filter.status, status] });
  };
  return (
    <div className="row chips" role="group" aria-label="States">
      {shown.map((status) => {
        const found = counts?.get(status);
        return (
          <button key={status} type="button" className="chip" aria-pressed={filter.status.includes(status)} onClick={() => turn(status)}>
            <Sign mark={STATUS_MARKS[status]} /> {statusWord(status)}
            {counts && <span className="num">{(found?.count ?? 0).toLocaleString("en")}{found?.more ? "+" : ""}</span>}
          </button>
        );
      })}
    </div>
  );
}

export function FilterFields({ filter, onChange, names }: Omit<Props, "counts">): ReactElement {
  const versions = filter.workflow ? names.versions(filter.workflow) : [];
  const isKnown = filter.workflow === "" || names.names.includes(filter.workflow);
  const isKnownSince = SINCE.some(([value]) => value === filter.since);
  return (
    <div className="row filter-fields">
      <select aria-label="Workflow" value={filter.workflow} onChange={(event) => onChange({ ...filter, workflow: event.target.value, version: "" })}>
        <option value="">any workflow</option>
        {!isKnown && <option value={filter.workflow}>{filter.workflow}</option>}
        {names.names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
      {filter.workflow !== "" && (
        <select aria-label="Version or tag" value={filter.version} onChange={(event) => onChange({ ...filter, version: event.target.value })}>
          <option value="">any version</option>
          {filter.version !== "" && !versions.some(({ value }) => value === filter.version) && <option value={filter.version}>{filter.version}</option>}
          {versions.map(({ value, label }) => <option key={value} value={value}>{label}</option>)}
        </select>
      )}
      <select aria-label="Since" value={filter.since} onChange={(event) => onChange({ ...filter, since: event.target.value, until: "" })}>
        {!isKnownSince && <option value={filter.since}>since {filter.since}</option>}
        {SINCE.map(([value, label]) => <option key={value} value={value}>{value ? "last " + label : label}</option>)}
      </select>
      <MoreChips filter={filter} onChange={onChange} />
      <AddFilter filter={filter} onChange={onChange} />
      {!isEmpty(filter) && <button type="button" className="plain" onClick={() => onChange(NO_FILTER)}>Clear</button>}
    </div>
  );
}

const MORE: { key: SingleKey; title: string }[] = [
  { key: "style", title: "style" }, { key: "until", title: "until" }, { key: "parent", title: "parent" }, { key: "waits", title: "waits for" },
  { key: "unchanged", title: "unchanged for" }, { key: "q", title: "begins with" },
];

function MoreChips({ filter, onChange }: { filter: RunFilter; onChange: Change }): ReactElement {
  return (
    <>
      {MORE.filter(({ key }) => filter[key] !== "").map(({ key, title }) => (
        <Removable key={key} text={`${title} ${filter[key]}`} onRemove={() => onChange({ ...filter, [key]: "" })} />
      ))}
      {filter.where.map((pair) => <Removable key={pair} text={pair} onRemove={() => onChange({ ...filter, where: filter.where.filter((one) => one !== pair) })} />)}
    </>
  );
}

function Removable({ text, onRemove }: { text: string; onRemove: () => void }): ReactElement {
  return <button type="button" className="chip removable" aria-label={`Remove the filter ${text}`} onClick={onRemove}><span className="cut"><bdi>{text}</bdi></span> <span aria-hidden="true">✕</span></button>;
}

type Added = "style" | "until" | "where" | "parent" | "waits" | "unchanged" | "q";
const ADDED: { key: Added; title: string; example: string; options?: readonly string[] }[] = [
  { key: "where", title: "Attribute", example: "customer=7" },
  { key: "q", title: "Id begins with", example: "order-" },
  { key: "waits", title: "Waits for", example: "", options: WAITS },
  { key: "unchanged", title: "Unchanged for", example: "1h" },
  { key: "style", title: "Style", example: "", options: STYLES },
  { key: "until", title: "Until", example: "1h or 2026-01-31" },
  { key: "parent", title: "Parent", example: "the id of a run" },
];

function AddFilter({ filter, onChange }: { filter: RunFilter; onChange: Change }): ReactElement {
  const [key, setKey] = useState<Added>("where");
  const [value, setValue] = useState("");
  const [why, setWhy] = useState<string | null>(null);
  const id = useId();
  const popover = useRef<HTMLDivElement>(null);
  const kind = ADDED.find((one) => one.key === key)!;
  const add = (event: FormEvent): void => {
    event.preventDefault();
    const given = kind.options && value === "" ? kind.options[0]! : value.trim();
    const wrong = given === "" ? "type a value" : whyNot(key, given);
    setWhy(wrong);
    if (wrong !== null) return;
    onChange(key === "where" ? { ...filter, where: [...new Set([...filter.where, given])] } : { ...filter, [key]: given });
    setValue("");
    popover.current?.hidePopover();
  };
  return (
    <>
      <button type="button" className="plain anchor-filter" popoverTarget={id}>+ filter</button>
      <div id={id} ref={popover} popover="auto" className="popup at-filter">
        <form className="column" onSubmit={add}>
          <label className="column">Filter by
            <select value={key} onChange={(event) => { setKey(event.target.value as Added); setValue(""); setWhy(null); }}>
              {ADDED.map((one) => <option key={one.key} value={one.key}>{one.title}</option>)}
            </select>
          </label>
          <label className="column">{kind.title}
            {kind.options
              ? <select value={value || kind.options[0]} onChange={(event) => setValue(event.target.value)}>{kind.options.map((one) => <option key={one}>{one}</option>)}</select>
              : <input value={value} placeholder={kind.example} aria-invalid={why !== null} aria-describedby={id + "why"} onChange={(event) => setValue(event.target.value)} />}
          </label>
          <p id={id + "why"} className="finding" role="status">{why}</p>
          <button className="primary">Add</button>
        </form>
      </div>
    </>
  );
}

/** The filter as text. It says at once what it cannot use, and is taken over with Enter. */
export function FilterLine({ filter, onChange, field }: { filter: RunFilter; onChange: Change; field: React.RefObject<HTMLInputElement | null> }): ReactElement {
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  const text = typed ?? filterText(filter);
  const findings = typed === null ? [] : parseFilter(typed).findings;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (typed === null) return;
    const read = parseFilter(typed);
    if (read.findings.length > 0) return;
    onChange(read.filter);
    setTyped(null);
    field.current?.blur();
  };
  return (
    <form className="filter-line" role="search" onSubmit={submit}>
      <input
        ref={field} className="mono" aria-label="Filter as text" placeholder="/  status:failed workflow:order customer=7 o-1" value={text} autoComplete="off" spellCheck={false}
        aria-invalid={findings.length > 0 || undefined} aria-describedby={id} onChange={(event) => setTyped(event.target.value)} onBlur={() => { if (typed === filterText(filter)) setTyped(null); }}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          event.stopPropagation();
          setTyped(null);
          event.currentTarget.blur();
        }}
      />
      <span id={id} className={findings.length > 0 ? "finding" : "muted"} role="status">
        {findings.length > 0 ? findings.map(({ what, why }) => `${what}: ${why}`).join(" · ") : typed !== null ? "Enter filters, Esc leaves" : ""}
      </span>
    </form>
  );
}
