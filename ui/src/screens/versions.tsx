/** Two versions of a workflow: what changed, as sentences, as a picture and as text. */
import "./workflow.css";

import { useState, type ReactElement } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { VersionDiff } from "../api/schema";
import { Picture, type BoxNote } from "../parts/picture";
import { ProblemNote } from "../parts/problem";
import { pathTo, queryText } from "../shell/address";
import { Link } from "../shell/link";
import { useTitle } from "../shell/questions";
import { counted } from "../shell/words";

const LINES_SHOWN = 1000;
/** How many equal lines are shown around a change. */
const AROUND = 3;

export default function Versions({ name, a, b }: { name: string; a: string; b: string }): ReactElement {
  const diff = useAsked(["workflow", name, "diff", a, b], (signal) => read(api.GET("/api/v1/workflows/{name}/diff/{a}/{b}", { params: { path: { name, a, b } }, signal })) as Promise<VersionDiff>);
  const [selected, setSelected] = useState<string | null>(null);
  const [isOutline, setOutline] = useState(false);
  useTitle(`${name}: ${a.slice(0, 8)} and ${b.slice(0, 8)}`);
  const version = (one: string): ReactElement => <Link to={pathTo("workflows", name) + queryText({ version: one })} className="mono">{one.slice(0, 12)}</Link>;
  return (
    <div className="workflow">
      <h1><Link to={pathTo("workflows", name)}>{name}</Link> from {version(a)} to {version(b)}</h1>
      {diff.error && <ProblemNote error={diff.error} retry={() => void diff.refetch()} />}
      {diff.data?.equal && <p>Both versions do the same.</p>}
      {diff.data && diff.data.sentences.length > 0 && <ul className="plain-list">{diff.data.sentences.map((line) => <li key={line}>{line}</li>)}</ul>}
      {diff.data && (
        <section className="workflow-picture" aria-label="Picture of both versions">
          <Picture picture={diff.data.picture} standing={undefined} selected={selected} onSelect={setSelected} notes={notesOf(diff.data)} isOutline={isOutline} onOutline={setOutline} />
        </section>
      )}
      {diff.data && !diff.data.equal && <Lines diff={diff.data} />}
    </div>
  );
}

function notesOf(diff: VersionDiff): Map<string, BoxNote> {
  return new Map(Object.entries(diff.boxes).map(([box, kind]) => [box, { kind, text: kind }]));
}

const SIGNS = { added: "+", removed: "-", same: " " } as const;

type Stretch = { from: number; lines: VersionDiff["lines"]; isFolded: boolean };

/** Return the lines in stretches. One that is far from any change is folded, unless a person opened it. */
function stretchesOf(lines: VersionDiff["lines"], opened: ReadonlySet<number>): Stretch[] {
  const near = new Set<number>();
  lines.forEach((line, at) => {
    if ((line.change ?? "same") !== "same") for (let other = at - AROUND; other <= at + AROUND; other++) near.add(other);
  });
  const found: Stretch[] = [];
  lines.forEach((line, at) => {
    const isFar = !near.has(at);
    const last = found.at(-1);
    if (last && last.isFolded === isFar) last.lines.push(line);
    else found.push({ from: at, lines: [line], isFolded: isFar });
  });
  return found.map((one) => ({ ...one, isFolded: one.isFolded && one.lines.length > 1 && !opened.has(one.from) }));
}

function Lines({ diff }: { diff: VersionDiff }): ReactElement {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const shown = diff.lines.slice(0, LINES_SHOWN);
  return (
    <section aria-labelledby="text-title">
      <div className="row"><h2 id="text-title">Text</h2>{!diff.is_written && <span className="muted">made from the stored documents</span>}</div>
      <div className="versions-diff" tabIndex={0} role="group" aria-label="Changed lines">
        {stretchesOf(shown, opened).map(({ from, lines, isFolded }) => (isFolded
          ? <button key={from} type="button" className="folded" onClick={() => setOpened(new Set([...opened, from]))}>{counted(lines.length, "equal line")}</button>
          : lines.map((line, at) => (
            <div key={from + at} className={line.change ?? "same"}>
              <span className="num">{line.a ?? ""}</span><span className="num">{line.b ?? ""}</span>
              <span>{SIGNS[line.change ?? "same"]}</span><span>{line.text}</span>
            </div>
          ))))}
      </div>
      {diff.lines.length > shown.length && <p className="muted">{counted(diff.lines.length - shown.length, "more line")} not shown.</p>}
    </section>
  );
}
