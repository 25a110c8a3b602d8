/** A problem, shown where it happened: title, detail, hint, and the page of its code. */
import { useState, type ReactElement } from "react";

import { Problem, Unreachable } from "../api/client";
import { part } from "../shell/part";

const HelpDialog = part(() => import("../shell/help"));

export function ProblemNote({ error, retry }: { error: unknown; retry?: () => void }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const problem = error instanceof Problem ? error : null;
  return (
    <div className="problem" role="group" aria-label="Problem">
      <strong>{titleOf(error)}</strong>
      {problem && problem.message !== problem.details.title && <span>{problem.message}</span>}
      {problem?.details.findings?.map((finding, at) => <span key={at}>{findingText(finding)}</span>)}
      {problem?.hint && <span>{problem.hint}</span>}
      <span className="row">
        {problem?.code && <button type="button" className="plain" onClick={() => setOpen(true)}>{problem.code}</button>}
        {retry && <button type="button" className="plain" onClick={retry}>Try again</button>}
      </span>
      {isOpen && problem && <HelpDialog code={problem.code} onClose={() => setOpen(false)} />}
    </div>
  );
}

function titleOf(error: unknown): string {
  if (error instanceof Problem) return error.details.title;
  if (error instanceof Unreachable) return "The server did not answer. What is shown may be old.";
  return error instanceof Error ? error.message : "Something went wrong.";
}

export function findingText(finding: unknown): string {
  if (typeof finding === "string") return finding;
  if (typeof finding === "object" && finding !== null && "message" in finding) {
    const place = "path" in finding && finding.path ? `${String(finding.path)}: ` : "";
    return place + String(finding.message);
  }
  return JSON.stringify(finding);
}
