/** What a run waits for, since when, until when, and the button that would unblock it; or how it ended. Always there. */
import { useState, type ReactElement, type ReactNode } from "react";

import type { ExplainedAction, Explanation, RunDetail, Waiting } from "../../api/schema";
import { durationText } from "../../parts/times";
import { Sign } from "../../parts/state";
import { Moment, msOf } from "../../parts/time";
import { Value } from "../../parts/values";
import { pathTo, runPath } from "../../shell/address";
import { useNow } from "../../shell/clock";
import { Link } from "../../shell/link";
import { copyText } from "../../shell/notices";
import { counted, STATUS_MARKS, statusWord, type RunStatus } from "../../shell/words";
import { select, type RunChosen } from "./chosen";
import type { Asked } from "./dialogs";
import { gatherWaits } from "./waits";
import { WAITS_SHOWN, Why } from "./why";

type Props = { chosen: RunChosen; run: RunDetail; explanation: Explanation | undefined; ask: (asked: Asked) => void; light: (arrows: string[]) => void };

export function ExplainLine(props: Props): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const { explanation } = props;
  const status = (explanation?.status ?? props.run.status) as RunStatus;
  const hasMore = explanation !== undefined && ((explanation.sections?.length ?? 0) > 0 || explanation.waiting.length > WAITS_SHOWN || !!explanation.hint || (explanation.progress?.length ?? 0) > 0);
  return (
    <section className={`explain explain-${STATUS_MARKS[status] ?? "idle"}`} aria-label="Why it stands as it stands">
      <div className="explain-line">
        <div className="grow column"><Answer {...props} status={status} /></div>
        {hasMore && <button type="button" className="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>why? {isOpen ? "▴" : "▾"}</button>}
      </div>
      {isOpen && explanation && <Why {...props} explanation={explanation} renderWait={(wait) => <WaitLine key={wait.location + wait.kind} {...props} wait={wait} />} />}
    </section>
  );
}

function Answer(props: Props & { status: RunStatus }): ReactElement {
  const { chosen, run, explanation, status } = props;
  const isNow = chosen.at === null;
  if (isNow && run.failure) return <FailedLine {...props} failure={run.failure} />;
  if (explanation === undefined) return <p className="muted">…</p>;
  if (isNow && status === "completed") return <OutputLine run={run} summary={explanation.summary} />;
  if (explanation.waiting.length > 0 && status !== "held" && status !== "paused") return <Waits {...props} waiting={explanation.waiting} />;
  const hold = explanation.diagnosis?.hold;
  return (
    <div className="row">
      <Sign mark={STATUS_MARKS[status] ?? "idle"} />
      <span className="wrap"><span className="unseen">{statusWord(status)}: </span><bdi>{hold ? hold.message : explanation.summary}</bdi></span>
      {hold?.place && <button type="button" className="plain mono" onClick={() => select(hold.place)}><bdi>{hold.place}</bdi></button>}
      {explanation.code && <code>{explanation.code}</code>}
      {isNow && explanation.action && <Unblock {...props} action={explanation.action} text={explanation.hint} />}
    </div>
  );
}

function Waits(props: Props & { waiting: Waiting[] }): ReactElement {
  const groups = gatherWaits(props.waiting);
  return (
    <>
      {groups.slice(0, WAITS_SHOWN).map(({ wait, count }) => <WaitLine key={wait.kind + (wait.box || wait.location) + wait.what} {...props} wait={wait} count={count} />)}
      {groups.length > WAITS_SHOWN && <span className="muted">and {counted(groups.length - WAITS_SHOWN, "more wait")} under why?</span>}
    </>
  );
}

function WaitLine(props: Props & { wait: Waiting; count?: number }): ReactElement {
  const { wait, chosen, count = 1 } = props;
  return (
    <div className="row wait">
      <Sign mark={wait.kind === "step" ? "working" : "waiting"} />
      <span className="wrap">
        {wait.kind === "step" ? "performs " : "waits for "}<bdi>{wait.what}</bdi>{count > 1 && <span className="num"> ×{count.toLocaleString("en")}</span>} <span className="muted">since <Moment at={wait.since} />{wait.until && <>, until <Moment at={wait.until} withDate />{chosen.at === null && <> <CountDown to={msOf(wait.until)} /></>}</>}</span>
      </span>
      {wait.location && <button type="button" className="plain mono cut" onClick={() => select(wait.box || wait.location)}><bdi>{wait.box || wait.location}</bdi></button>}
      {chosen.at === null && wait.action && <Unblock {...props} action={wait.action} text={wait.unblock ?? ""} />}
      {!wait.action && wait.unblock && <span className="muted wrap"><bdi>{wait.unblock}</bdi></span>}
    </div>
  );
}

function CountDown({ to }: { to: number }): ReactElement {
  const now = useNow(1000);
  return <span className="num">({to > now ? `in ${durationText(Math.floor((to - now) / 1000) * 1000)}` : "due"})</span>;
}

/** The button that lets the run go on, or what to do where no button can. */
function Unblock({ run, action, text, ask }: Props & { action: ExplainedAction; text?: string }): ReactElement {
  switch (action.kind) {
    case "answer": return <Link className="button" to={pathTo("inbox", action.approval ?? "")}>Answer</Link>;
    case "send": return <button type="button" disabled={!run.actions.send.allowed} title={run.actions.send.why_not || undefined} onClick={() => ask({ action: "send", names: action.names ?? [] })}>Send</button>;
    case "open": return <Link className="button" to={runPath(action.run ?? "")}>Open <bdi>{action.run}</bdi></Link>;
    case "resume": return <ActionButton run={run} name="resume" word="Resume" ask={ask} />;
    case "retry": return <ActionButton run={run} name="retry" word="Retry" ask={ask} />;
    case "withdraw":
    case "start_worker": return <Instruction text={text ?? ""} />;
    default: return action.kind satisfies never;
  }
}

function ActionButton({ run, name, word, ask }: { run: RunDetail; name: "resume" | "retry"; word: string; ask: (asked: Asked) => void }): ReactElement {
  const { allowed, why_not } = run.actions[name];
  return <button type="button" disabled={!allowed} title={why_not || undefined} onClick={() => ask({ action: name })}>{word}</button>;
}

function Instruction({ text }: { text: string }): ReactElement {
  return <><code className="wrap">{text}</code><button type="button" className="plain" onClick={() => copyText(text)}>Copy</button></>;
}

function FailedLine({ run, failure, ask }: Props & { failure: NonNullable<RunDetail["failure"]> }): ReactElement {
  const place = failure.box || failure.location || "";
  const fold: ReactNode = failure.traceback && (
    <details><summary>Traceback</summary><pre className="traceback">{failure.traceback}</pre></details>
  );
  return (
    <>
      <div className="row">
        <Sign mark="failed" />
        <span className="wrap"><span className="unseen">failed: </span><strong><bdi>{failure.type}</bdi></strong>: <bdi>{failure.message.slice(0, 2000)}</bdi></span>
        {place && <span>at <button type="button" className="plain mono" onClick={() => select(place)}><bdi>{place}</bdi></button></span>}
        {failure.where && <code className="muted"><bdi>{failure.where}</bdi></code>}
        {(failure.attempts ?? 1) > 1 && <span className="muted">{failure.attempts} attempts</span>}
        <span className="row">
          <ActionButton run={run} name="retry" word="Retry" ask={ask} />
          <button type="button" disabled={!run.actions.fork.allowed} title={run.actions.fork.why_not || undefined} onClick={() => ask({ action: "fork", before: "failure" })}>Fork before it</button>
        </span>
      </div>
      {!run.actions.retry.allowed && <small className="muted">{run.actions.retry.why_not}</small>}
      {fold}
    </>
  );
}

function OutputLine({ run, summary }: { run: RunDetail; summary: string }): ReactElement {
  const text = JSON.stringify(run.output) ?? "null";
  return (
    <>
      <div className="row"><Sign mark="done" /><span className="wrap">completed: <bdi>{summary}</bdi></span></div>
      {run.output !== null && (text.length < 120
        ? <div className="row"><span className="muted">output</span> <code className="wrap"><bdi>{text}</bdi></code></div>
        : <details><summary>Output</summary><Value value={run.output} /></details>)}
    </>
  );
}
