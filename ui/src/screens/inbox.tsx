/** Inbox: the questions that wait for people, those that are due first at the top, and the one that is being answered. */
import "./inbox.css";

import { useRef, type ReactElement } from "react";

import type { ListedApproval } from "../api/schema";
import { ProblemNote } from "../parts/problem";
import { choose, navigate, pathTo, queryText, useChosen } from "../shell/address";
import { useKeys } from "../shell/keys";
import { useTitle } from "../shell/questions";
import { hasText, useQuestions } from "./inbox/data";
import { QuestionList } from "./inbox/list";
import { Question } from "./inbox/question";

export default function Inbox({ id }: { id: string | null }): ReactElement {
  const chosen = useChosen();
  const isMine = chosen.get("all") === null;
  const text = chosen.get("q") ?? "";
  const workflow = chosen.get("workflow") ?? "";
  const { questions, isCut, error, retry } = useQuestions();
  const field = useRef<HTMLInputElement>(null);
  const found = questions?.filter((one) => hasText(one, text) && (workflow === "" || one.workflow === workflow)) ?? [];
  const mine = found.filter(({ may }) => may.allowed);
  const shown = isMine ? mine : found;
  const at = shown.findIndex((one) => one.id === id);
  const open = (question: ListedApproval | undefined): void => {
    if (question) navigate(pathTo("inbox", question.id) + kept(chosen));
  };
  useTitle("Inbox");
  useKeys("Inbox", [
    { keys: "j", does: "Next question", run: () => open(shown[at + 1] ?? shown[0]) },
    { keys: "k", does: "Previous question", run: () => open(shown[at - 1] ?? shown.at(-1)) },
    { keys: "/", does: "Filter", run: () => field.current?.focus() },
    { keys: "Escape", does: "Back to the list", run: () => navigate("/inbox" + kept(chosen)), isHidden: true },
  ]);
  const countOf = (some: readonly unknown[]): string => (questions === undefined ? "" : some.length.toLocaleString("en") + (isCut ? "+" : ""));
  return (
    <div className={id === null ? "inbox" : "inbox with-question"}>
      <section className="questions" aria-label="Questions">
        <div className="row">
          <h1>Inbox</h1>
          <button type="button" className="chip" aria-pressed={isMine} onClick={() => choose({ all: null })}>Mine <span className="num">{countOf(mine)}</span></button>
          <button type="button" className="chip" aria-pressed={!isMine} onClick={() => choose({ all: "1" })}>All <span className="num">{countOf(found)}</span></button>
          <WorkflowChoice questions={questions ?? []} chosen={workflow} />
          <input ref={field} type="search" className="grow" aria-label="Filter the questions" placeholder="Filter" value={text}
            onChange={(event) => choose({ q: event.target.value }, { replace: true })} />
        </div>
        {error !== null && error !== undefined && <ProblemNote error={error} retry={retry} />}
        {shown.length > 0 && <QuestionList questions={shown} selected={id} suffix={kept(chosen)} />}
        {questions !== undefined && shown.length === 0 && <Nothing isMine={isMine} text={text} workflow={workflow} others={found.length} />}
      </section>
      {id !== null && (
        <Question key={id} id={id} next={() => open(shown[at + 1] ?? shown[at - 1])} hasNext={shown.length > 1} />
      )}
      {id === null && shown.length > 0 && <p className="muted pick">Choose a question, or press <kbd>j</kbd>.</p>}
    </div>
  );
}

/** The workflows that ask; nothing if there is only one. */
function WorkflowChoice({ questions, chosen }: { questions: ListedApproval[]; chosen: string }): ReactElement | null {
  const names = [...new Set([...questions.map((one) => one.workflow), ...(chosen ? [chosen] : [])])].sort();
  if (names.length < 2 && !chosen) return null;
  return (
    <select aria-label="Workflow" value={chosen} onChange={(event) => choose({ workflow: event.target.value || null })}>
      <option value="">any workflow</option>
      {names.map((name) => <option key={name}>{name}</option>)}
    </select>
  );
}

function kept(chosen: URLSearchParams): string {
  return queryText({ all: chosen.get("all"), workflow: chosen.get("workflow"), q: chosen.get("q") });
}

function Nothing({ isMine, text, workflow, others }: { isMine: boolean; text: string; workflow: string; others: number }): ReactElement {
  const forOthers = isMine && others > 0 && (
    <button type="button" onClick={() => choose({ all: "1" })}>{others === 1 ? "1 waits for others" : `${others} wait for others`}</button>
  );
  if (text || workflow) {
    return (
      <div className="empty">
        <p>No open question{workflow && <> of <bdi>{workflow}</bdi></>}{text && <> has “<bdi>{text}</bdi>” in its title, workflow or run</>}{forOthers ? " and is for you." : "."}</p>
        {forOthers} <button type="button" onClick={() => choose({ q: null, workflow: null })}>Clear the filter</button>
      </div>
    );
  }
  if (!isMine) return <div className="empty"><p>No run waits for an answer.</p></div>;
  return <div className="empty"><p>No open questions for you.</p>{forOthers}</div>;
}
