/** Two runs over each other: where they part, what differs at each box, and both pictures as one. */
import "./compare/compare.css";

import { useMemo, type ReactElement } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { DrawnPicture, RunsDiff } from "../api/schema";
import { Picture } from "../parts/picture";
import { ProblemNote } from "../parts/problem";
import { choose, pathTo, runPath, useChosen } from "../shell/address";
import { useKeys } from "../shell/keys";
import { Link } from "../shell/link";
import { useTitle } from "../shell/questions";
import { ComparedTable } from "./compare/compared-table";
import { Differences } from "./compare/differences";
import { notesOf } from "./compare/notes";

export default function Compare({ a, b }: { a: string; b: string }): ReactElement {
  useTitle(`${a} and ${b}`);
  const params = { path: { id: a, other: b } };
  const found = useAsked(["compare", a, b], (signal) => read(api.GET("/api/v1/runs/{id}/diff/{other}", { params, signal })));
  return (
    <div className="compare">
      <header className="row">
        <nav aria-label="Path" className="row"><Link to="/runs">Runs</Link> <span className="muted">›</span></nav>
        <h1 className="wrap"><span className="muted">A</span> <Link to={runPath(a)}><bdi>{a}</bdi></Link> <span className="muted">and B</span> <Link to={runPath(b)}><bdi>{b}</bdi></Link></h1>
        <span className="grow" />
        <Link className="button" to={pathTo("runs", b, "diff", a)}>Swap</Link>
      </header>
      {found.error && <ProblemNote error={found.error} retry={() => void found.refetch()} />}
      {found.data ? <Compared a={a} b={b} found={found.data} /> : !found.error && <p className="muted">The runs are being compared…</p>}
    </div>
  );
}

function Compared({ a, b, found }: { a: string; b: string; found: RunsDiff }): ReactElement {
  const chosen = useChosen();
  const selected = chosen.get("sel");
  const isOutline = chosen.get("view") === "outline";
  const notes = useMemo(() => notesOf(found.boxes), [found.boxes]);
  const picture = useAsked(["compare-picture", a, b], (signal) => {
    const asked = read(api.GET("/api/v1/runs/{id}/diff/{other}/picture", { params: { path: { id: a, other: b } }, signal }));
    return asked as Promise<DrawnPicture>;
  });
  const select = (box: string | null): void => choose({ sel: box }, { replace: true });
  useKeys("Compare", [
    { keys: "o", does: "Picture or outline", run: () => choose({ view: isOutline ? null : "outline" }, { replace: true }) },
    { keys: "Escape", does: "Select nothing", run: () => select(null) },
  ]);
  return (
    <>
      <Parting a={a} b={b} found={found} />
      <div className="compare-panes">
        <div className="compare-picture">
          {picture.error && <ProblemNote error={picture.error} retry={() => void picture.refetch()} />}
          {picture.data && (
            <Picture
              picture={picture.data} standing={undefined} selected={selected} onSelect={select} notes={notes}
              isOutline={isOutline} onOutline={(next) => choose({ view: next ? "outline" : null }, { replace: true })}
            />
          )}
        </div>
        <div className="compare-side">
          <ComparedTable a={a} b={b} boxes={found.boxes} selected={selected} onSelect={select} />
          <Differences a={a} b={b} changed={found.runs?.changed ?? []} selected={selected} />
        </div>
      </div>
    </>
  );
}

function Parting({ a, b, found }: { a: string; b: string; found: RunsDiff }): ReactElement {
  const first = found.runs?.first;
  const { a: atA, b: atB } = found.parting;
  if (found.equal || !first) return <p role="status">✓ Both did the same, with the same values. Only times differ.</p>;
  if (atA === null && atB === null) return <p className="parting">They part at <code><bdi>{first.place}</bdi></code> ({first.aspect}), and otherwise do the same.</p>;
  return (
    <p className="parting">
      They part at <code><bdi>{first.place}</bdi></code> ({first.aspect}). Their logs differ from{" "}
      {atA === null ? "the end of A" : <Link to={runPath(a, { at: atA })}>event {atA} of A</Link>} and{" "}
      {atB === null ? "the end of B" : <Link to={runPath(b, { at: atB })}>event {atB} of B</Link>} on.
    </p>
  );
}
