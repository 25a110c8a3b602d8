/** A value as folded JSON. Values are text: no markup is read. Long texts are cut and say their size. */
import { useState, type ReactElement } from "react";

import { copyText } from "../shell/notices";
import { bytesText, headOf, linkIn, previewOf } from "./value-text";

const DEPTH_OPEN = 2;
const ITEMS_SHOWN = 100;
const TEXT_SHOWN = 2000;
const DEPTH_MAX = 40;

export function Value({ value, label }: { value: unknown; label?: string }): ReactElement {
  const { text, bytes, isCut } = headOf(value);
  return (
    <div className="value">
      <div className="row">
        {label && <h3>{label}</h3>}
        <span className="grow" />
        {bytes > 1024 && <span className="muted">{bytesText(bytes)}</span>}
        <button type="button" className="plain" onClick={() => copyText(JSON.stringify(value, null, 2) ?? "null")}>Copy</button>
        {isCut && <button type="button" className="plain" onClick={() => download(value, label ?? "value")}>Download</button>}
      </div>
      {isCut ? <pre>{text}…</pre> : <Node value={value} depth={0} />}
    </div>
  );
}

function download(value: unknown, name: string): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = `${name}.json`;
  anchor.click();
  URL.revokeObjectURL(url);
}

function Node({ value, depth }: { value: unknown; depth: number }): ReactElement {
  if (typeof value === "string") return <Text text={value} />;
  if (typeof value !== "object" || value === null) return <span className={`json ${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length === 0) return <span className="json">{Array.isArray(value) ? "[]" : "{}"}</span>;
  if (depth >= DEPTH_MAX) return <pre>{headOf(value).text}</pre>;
  return <Entries value={value} entries={entries} depth={depth} />;
}

function Entries({ value, entries, depth }: { value: object; entries: [string, unknown][]; depth: number }): ReactElement {
  const [shown, setShown] = useState(ITEMS_SHOWN);
  const [isOpen, setOpen] = useState(depth < DEPTH_OPEN && entries.length <= ITEMS_SHOWN);
  return (
    <details className="json" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="mono">{previewOf(value)}</summary>
      {isOpen && (
        <dl>
          {entries.slice(0, shown).map(([name, child]) => (
            <div key={name}>
              <dt className="mono">{name}</dt>
              <dd><Node value={child} depth={depth + 1} /></dd>
            </div>
          ))}
          {entries.length > shown && (
            <button type="button" className="plain" onClick={() => setShown(shown + 10 * ITEMS_SHOWN)}>
              {entries.length - shown} more
            </button>
          )}
        </dl>
      )}
    </details>
  );
}

function Text({ text }: { text: string }): ReactElement {
  const [isWhole, setWhole] = useState(false);
  if (text === "") return <span className="json muted">""</span>;
  const link = linkIn(text);
  if (link) return <a href={link} target="_blank" rel="noopener noreferrer">{text}</a>;
  if (text.length <= TEXT_SHOWN || isWhole) return <span className="json string">{text}</span>;
  return (
    <span className="json string">
      {text.slice(0, TEXT_SHOWN)}…{" "}
      <button type="button" className="plain" onClick={() => setWhole(true)}>{text.length.toLocaleString("en")} characters: show all</button>
    </span>
  );
}
