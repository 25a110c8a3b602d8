/** One workflow: the picture of a version, its source as written, its versions and tags, and its runs. */
import "./workflow.css";

import { useState, type ReactElement } from "react";

import { api, Problem, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { DrawnPicture, StandingView, VersionStanding, WorkflowAbout } from "../api/schema";
import { Picture } from "../parts/picture";
import { ProblemNote } from "../parts/problem";
import { choose, openRunsPath, runPath, useChosen } from "../shell/address";
import { Link } from "../shell/link";
import { part } from "../shell/part";
import { useTitle } from "../shell/questions";
import { may, useMe } from "../shell/session";
import { counted } from "../shell/words";
import { Source } from "./workflow/source";
import { Tags } from "./workflow/tags";
import { VersionList } from "./workflow/version-list";

const StartDialog = part(() => import("../parts/start-dialog"));

export default function Workflow({ name }: { name: string }): ReactElement {
  const about = useAsked(["workflow", name, "about"], (signal) => read(api.GET("/api/v1/workflows/{name}/about", { params: { path: { name } }, signal })), { refetchMs: 10_000 });
  const version = useChosen().get("version") ?? about.data?.newest ?? null;
  useTitle(name);
  if (about.error && !about.data) return <><h1>{name}</h1><ProblemNote error={about.error} retry={() => void about.refetch()} /></>;
  return (
    <div className="workflow">
      {about.data && <Head about={about.data} version={version} />}
      {about.data && version !== null && (
        <div className="workflow-body">
          <VersionPicture name={name} version={version} isCode={about.data.style === "code"} />
          <div className="workflow-side">
            <VersionList name={name} shown={version} />
            <Tags name={name} version={version} tags={about.data.tags} />
          </div>
        </div>
      )}
      {version !== null && <Source name={name} version={version} />}
    </div>
  );
}

function Head({ about, version }: { about: WorkflowAbout; version: string | null }): ReactElement {
  const [isStarting, setStarting] = useState(false);
  const mayStart = may(useMe(), "start");
  return (
    <>
      <div className="row">
        <Link to="/workflows">Workflows</Link> ›
        <h1>{about.name}</h1>
        <span className="chip">{about.style}</span>
        {version && <span className="muted">version <span className="mono">{version.slice(0, 12)}</span></span>}
        {!about.hosted && <span className="muted">no process hosts it</span>}
        <span className="grow" />
        <Link to={openRunsPath(about.name)}>{counted(about.open_runs, "open run")}</Link>
        {about.last_run && <Link to={runPath(about.last_run.id)}>last run</Link>}
        {mayStart && <button type="button" className="primary" onClick={() => setStarting(true)}>Start</button>}
      </div>
      {about.description && <p>{about.description}</p>}
      {about.where && <p className="muted">defined in <code>{about.where}</code></p>}
      {isStarting && <StartDialog workflow={about.name} version={version === about.newest ? "" : version ?? ""} onClose={() => setStarting(false)} />}
    </>
  );
}

function VersionPicture({ name, version, isCode }: { name: string; version: string; isCode: boolean }): ReactElement {
  const path = { name, version };
  const picture = useAsked(["workflow", name, "picture", version], (signal) => read(api.GET("/api/v1/workflows/{name}/versions/{version}/picture", { params: { path }, signal })) as Promise<DrawnPicture>);
  const counts = useAsked(["workflow", name, "standing", version], (signal) => read(api.GET("/api/v1/workflows/{name}/versions/{version}/standing", { params: { path }, signal })), { refetchMs: 30_000 });
  const selected = useChosen().get("sel");
  const [isOutline, setOutline] = useState(false);
  const isNeverRun = isCode && picture.error instanceof Problem && picture.error.status === 404;
  return (
    <section className="workflow-picture" aria-label="Picture">
      {isNeverRun && <p className="muted">No run of the last day: the picture of a code workflow is what its runs recorded.</p>}
      {picture.error && !isNeverRun && <ProblemNote error={picture.error} retry={() => void picture.refetch()} />}
      {picture.data && (
        <Picture picture={picture.data} standing={counts.data && standingOf(counts.data)} selected={selected} onSelect={(box) => choose({ sel: box }, { replace: true })} isOutline={isOutline} onOutline={setOutline} />
      )}
    </section>
  );
}

/** Return the numbers of many runs in the shape of one run's standing. */
function standingOf(counts: VersionStanding): StandingView {
  return { seq: 0, at: null, status: "", boxes: counts.boxes, arrows: counts.arrows };
}
