/** What an agent was asked, said and did: its turns, tool calls and their results, who approved what, and what it cost. */
import "./conversation.css";

import { useCallback, useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { CallView, ChunkView, ConversationView, RunDetail, RunUsage, TurnView } from "../../api/schema";
import { ProblemNote } from "../../parts/problem";
import { MarkWord } from "../../parts/state";
import { Moment } from "../../parts/time";
import { pathTo, runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { counted, type Mark } from "../../shell/words";
import { select } from "./chosen";
import { useChunks } from "./chunks";
import { SILENCE, withSaid, type LiveTurn, type LiveTurns } from "./conversation-live";
import { isOpenRun, runKey } from "./data";

const TURNS = 50;
const STREAM = "agent";
const CALL_MARKS: Record<CallView["status"], Mark> = { asked: "waiting", running: "working", done: "done", refused: "cancelled", failed: "failed" };
const CALL_WORDS: Record<CallView["status"], string> = { asked: "waits for approval", running: "running", done: "done", refused: "not performed", failed: "failed" };

/** Whether a run is one of an agent: its input names the agent. */
export function isAgentRun(run: RunDetail): boolean {
  const input = run.input as { agent?: unknown } | null;
  return run.workflow === "weft.agent" || (typeof input === "object" && input !== null && input.agent === run.workflow);
}

/** ``at`` is the chosen event; null for now. */
export function Conversation({ run, at }: { run: RunDetail; at: number | null }): ReactElement {
  const [shown, setShown] = useState(TURNS);
  const query = at === null ? { limit: shown } : { limit: shown, at };
  const asked = useAsked(runKey({ id: run.id, at }, "conversation", shown), (signal) => read(api.GET("/api/v1/runs/{id}/conversation", { params: { path: { id: run.id }, query }, signal })));
  const usage = useAsked(runKey({ id: run.id, at: null }, "usage"), (signal) => read(api.GET("/api/v1/runs/{id}/usage", { params: { path: { id: run.id } }, signal })));
  const live = useSaid(run);
  if (asked.data === undefined) return asked.error ? <ProblemNote error={asked.error} retry={() => void asked.refetch()} /> : <p className="run-none muted">…</p>;
  const talk = asked.data;
  return (
    <div className="talk" role="log" aria-label={`Conversation of ${talk.agent}`} aria-live="off">
      {asked.error && <ProblemNote error={asked.error} />}
      {at !== null && <p className="muted">The conversation as it was after event {at.toLocaleString("en")}. What it used is as it is now.</p>}
      <Used talk={talk} usage={usage.data} />
      {talk.system && <details><summary className="muted">What {talk.agent} was told to be</summary><p className="talk-text">{talk.system}</p></details>}
      {talk.before !== null && <span><button type="button" className="plain" onClick={() => setShown(shown + TURNS)}>Earlier turns</button></span>}
      {talk.before === null && <section className="talk-turn" data-who="user" aria-label="The task"><div className="talk-head"><h2>The task</h2></div><p className="talk-text"><bdi>{talk.prompt}</bdi></p></section>}
      {talk.turns.map((turn) => <Turn key={turn.number} run={run.id} turn={turn} said={at === null && turn.is_running ? live.get(turn.number) : undefined} />)}
    </div>
  );
}

function Used({ talk, usage }: { talk: ConversationView; usage: RunUsage | undefined }): ReactElement {
  return (
    <div className="talk-used" aria-label="What it used">
      <span>{counted(talk.turns.length, "turn")}{talk.before !== null && " shown"}</span>
      {usage?.units.map((unit) => <span key={unit.unit} className="num">{unit.text}</span>)}
      {usage?.budgets.filter((budget) => budget.run !== talk.run).flatMap((budget) => budget.units.map((unit) => <span key={budget.run + unit.unit} className="num"><strong>budget of <bdi>{budget.run}</bdi></strong> {unit.text}</span>))}
    </div>
  );
}

function Turn({ run, turn, said }: { run: string; turn: TurnView; said: LiveTurn | undefined }): ReactElement {
  return (
    <section className="talk-turn" data-open={turn.is_running} aria-label={`Turn ${turn.number + 1}`}>
      <div className="talk-head">
        <h2>Turn {turn.number + 1}</h2>
        <Moment at={turn.at} />
        {turn.is_running ? <MarkWord mark="working" word="the model answers" /> : <span><bdi>{turn.model || turn.alias}</bdi></span>}
        {!turn.is_running && <span className="num">{(turn.input_tokens ?? 0).toLocaleString("en")} in, {(turn.output_tokens ?? 0).toLocaleString("en")} out</span>}
        {turn.finish === "length" && <MarkWord mark="failed" word="cut off at its limit" />}
        {turn.finish === "refused" && <MarkWord mark="failed" word="refused" />}
      </div>
      {(turn.passed_models ?? []).map((passed) => <p key={passed.model} className="talk-text muted"><bdi>{passed.model}</bdi> did not answer (<bdi>{passed.why}</bdi>), so <bdi>{passed.instead}</bdi> was asked.</p>)}
      {said?.reasoning && <details><summary className="muted">What it thinks</summary><p className="talk-text muted">{said.reasoning}</p></details>}
      {(turn.text || said?.text) && <p className="talk-text"><bdi>{turn.text || said?.text}</bdi></p>}
      {(turn.calls ?? []).map((call) => <Call key={call.place} run={run} call={call} />)}
    </section>
  );
}

function Call({ run, call }: { run: string; call: CallView }): ReactElement {
  return (
    <details className="talk-call" data-status={call.status} open={call.status === "asked"}>
      <summary>
        <span className="mono"><bdi>{call.tool}</bdi></span>
        <MarkWord mark={CALL_MARKS[call.status]} word={CALL_WORDS[call.status]} />
        <Approval call={call} />
        {call.status === "asked" && <Link className="button" to={pathTo("inbox", `${run}:${call.approval || call.place}`)}>Answer</Link>}
      </summary>
      <h3>Arguments</h3>
      <pre>{pretty(call.arguments)}</pre>
      {call.result && <><h3>Result</h3><pre>{pretty(call.result)}</pre></>}
      <div className="row">
        <button type="button" className="plain" onClick={() => select(call.place)}>Show in the picture</button>
        {call.child && <Link to={runPath(call.child)}>Open <bdi>{call.child}</bdi></Link>}
      </div>
    </details>
  );
}

function Approval({ call }: { call: CallView }): ReactElement | null {
  if (call.approved === null || call.approved === undefined) return null;
  const who = (call.by ?? []).join(", ") || "the time limit";
  return <span className="muted">{call.approved ? "approved" : "rejected"} by <bdi>{who}</bdi>{call.reason && <>: <bdi>{call.reason}</bdi></>}</span>;
}

/** JSON with line breaks; anything else as it is. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Follow what the agent says. The stream is that of the root of its tree. */
function useSaid(run: RunDetail): LiveTurns {
  const fold = useCallback((known: LiveTurns, chunks: ChunkView[]) => withSaid(known, chunks, run.id), [run.id]);
  return useChunks(run.root, STREAM, SILENCE, fold, isOpenRun(run));
}
