/** The head of a run: where it belongs, its state, its age, its workflow, its attributes, and what may be done to it. */
import { useRef, type ReactElement } from "react";

import { apiUrl } from "../../api/client";
import type { RunDetail } from "../../api/schema";
import { Status } from "../../parts/state";
import { Age, Took } from "../../parts/time";
import { pathTo, queryText, runPath } from "../../shell/address";
import { useActions } from "../../shell/actions";
import { useKeys } from "../../shell/keys";
import { Link } from "../../shell/link";
import { copyText } from "../../shell/notices";
import { isOver, type RunStatus } from "../../shell/words";
import type { RunChosen } from "./chosen";
import type { Asked } from "./dialogs";

const BUTTONS = ["pause", "resume", "cancel", "retry", "fork"] as const;
const WORDS: Record<string, string> = {
  pause: "Pause", resume: "Resume", cancel: "Cancel", retry: "Retry", fork: "Fork", send: "Send a message", export: "Export",
};
const VERSION_CHARS = 8;

/** `status` is that of the moment which is shown. */
type Props = { chosen: RunChosen; run: RunDetail; status: RunStatus; ask: (asked: Asked) => void };

export function RunHeader({ chosen, run, status, ask }: Props): ReactElement {
  return (
    <header className="run-head">
      <Path run={run} />
      <span className="row">
        <Status status={status} />
        {chosen.at !== null ? null : isOver(run.status) ? <Age at={run.ended_at ?? run.updated_at} /> : <Took from={run.created_at} to={null} />}
      </span>
      <Version run={run} />
      <Attributes run={run} />
      {run.forked_from && (
        <span className="muted">forked from <Link to={runPath(run.forked_from.run, { at: run.forked_from.seq })}><bdi>{run.forked_from.run}</bdi></Link>{" "}
          · <Link to={pathTo("runs", run.forked_from.run, "diff", run.id)}>Compare</Link></span>
      )}
      <span className="grow" />
      {chosen.at === null ? <Actions run={run} ask={ask} /> : <PastActions chosen={chosen} run={run} ask={ask} />}
    </header>
  );
}

function Path({ run }: { run: RunDetail }): ReactElement {
  const above = run.ancestors ?? [];
  const shown = above.length > 2 ? [above[0]!, null, above.at(-1)!] : above;
  return (
    <nav aria-label="Path of the run" className="run-path">
      <Link to="/runs">Runs</Link>
      {shown.map((id) => (id === null
        ? <span key="…" className="muted" title={above.slice(1, -1).join(" › ")}>› …</span>
        : <span key={id} className="cut">› <Link to={runPath(id)}><bdi>{id}</bdi></Link></span>))}
      <span className="muted">›</span> <h1 className="cut" title={run.id}><bdi>{run.id}</bdi></h1>
      <button type="button" className="plain" aria-label="Copy the id" onClick={() => copyText(run.id)}>copy</button>
    </nav>
  );
}

function Version({ run }: { run: RunDetail }): ReactElement {
  const tags = run.version_tags ?? [];
  const isShort = run.version.length < 2 * VERSION_CHARS;
  const title = `${run.workflow}, version ${run.version}`;
  const text = (
    <>
      <span className="cut"><bdi>{run.workflow}</bdi></span>{tags.map((tag) => <span key={tag}> @<bdi>{tag}</bdi></span>)} <span className="muted">· {isShort ? `version ${run.version}` : run.version.slice(0, VERSION_CHARS)}</span>
    </>
  );
  // Goals that were named by steps, and Weft's own runs, are of no workflow that has a screen.
  if ((run.workflow === "goal" && run.style === "goal") || run.workflow.startsWith("weft.")) return <span title={title} className="run-version">{text}</span>;
  return <Link to={pathTo("workflows", run.workflow) + queryText({ version: run.version })} title={title} className="run-version">{text}</Link>;
}

function Attributes({ run }: { run: RunDetail }): ReactElement | null {
  const own = Object.entries(run.attributes as Record<string, unknown>).filter(([name]) => !name.startsWith("weft."));
  if (own.length === 0) return null;
  return (
    <span className="row">
      {own.slice(0, 6).map(([name, value]) => {
        const text = typeof value === "string" ? value : JSON.stringify(value);
        return <Link key={name} className="chip" to={"/runs" + queryText({ where: `${name}=${text}` })} title={`${name}=${text}`}><span className="muted"><bdi>{name}</bdi></span> <span className="cut"><bdi>{text.slice(0, 60)}</bdi></span></Link>;
      })}
      {own.length > 6 && <span className="muted">{own.length - 6} more in Data</span>}
    </span>
  );
}

function Actions({ run, ask }: { run: RunDetail; ask: (asked: Asked) => void }): ReactElement {
  const menu = useRef<HTMLDetailsElement>(null);
  const { actions } = run;
  useKeys("Run", [{ keys: ".", does: "Actions", run: () => {
    if (menu.current) menu.current.open = true;
    menu.current?.querySelector("summary")?.focus();
  } }]);
  const close = (): void => {
    if (menu.current) menu.current.open = false;
  };
  useActions([
    ...BUTTONS.filter((name) => actions[name].allowed).map((name) => ({ title: `${WORDS[name]!} ${run.id}`, run: () => ask({ action: name }) })),
    ...(actions.send.allowed ? [{ title: `${WORDS["send"]!} to ${run.id}`, run: () => ask({ action: "send" as const, names: [] }) }] : []),
  ]);
  const off = BUTTONS.filter((name) => !actions[name].allowed);
  return (
    <div className="run-actions">
      {BUTTONS.filter((name) => actions[name].allowed).map((name) => (
        <button key={name} type="button" className={name === "cancel" ? "danger" : undefined} onClick={() => ask({ action: name })}>{WORDS[name]}</button>
      ))}
      <details ref={menu} className="menu" onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
        menu.current?.querySelector("summary")?.focus();
      }} onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) close();
      }}>
        <summary className="button" aria-label="More actions" title="More actions (.)">⋯</summary>
        <div className="menu-items">
          <MenuItem word={WORDS["send"]!} {...actions.send} act={() => { close(); ask({ action: "send", names: [] }); }} />
          {actions.export.allowed
            ? <a className="button" href={apiUrl(`/bundles/${encodeURIComponent(run.id)}`)} download={`${run.id}.weft`} onClick={close}>Export <span className="muted">a bundle</span></a>
            : <MenuItem word="Export" {...actions.export} />}
          <button type="button" onClick={() => { close(); copyText(location.href); }}>Copy link</button>
          {off.map((name) => <MenuItem key={name} word={WORDS[name]!} {...actions[name]} />)}
        </div>
      </details>
    </div>
  );
}

function MenuItem({ word, allowed, why_not, act }: { word: string; allowed: boolean; why_not?: string; act?: () => void }): ReactElement {
  if (allowed) return <button type="button" onClick={act}>{word}</button>;
  return <div className="menu-off"><button type="button" aria-disabled="true">{word}</button><small className="muted">{why_not}</small></div>;
}

function PastActions({ chosen, run, ask }: Omit<Props, "status">): ReactElement {
  const { allowed, why_not } = run.actions.fork;
  return (
    <div className="run-actions">
      <button type="button" disabled={!allowed} title={why_not || undefined} onClick={() => ask({ action: "fork", ...(chosen.at === null ? {} : { at: chosen.at }) })}>Fork here</button>
      <button type="button" onClick={() => copyText(location.href)}>Copy link</button>
    </div>
  );
}
