/** Inbox: the questions that wait for people, those that are due first at the top, and the one that is being answered. */
import "./inbox.css";

import { useRef, type ReactElement } from "react";

import type { ListedApproval } from "../api/schema";
import { ProblemNote } from "../parts/problem";
import { durationText } from "../parts/times";
import { choose, navigate, pathTo, queryText, useChosen } from "../shell/address";
import { useNow } from "../shell/clock";
import { useKeys } from "../shell/keys";
import { Link } from "../shell/link";
import { useTitle } from "../shell/questions";
import { useQuestions } from "./inbox/data";
import { Question } from "./inbox/question";

export default function Inbox({ id }: { id: string | null }): ReactElement {
  const chosen = useChosen();
  const isMine = chosen.get("all") === null;
  const text = chosen.get("q") ?? "";
  const { questions, error, retry } = useQuestions({ isMine, text });
  const field = useRef<HTMLInputElement>(null);
  const shown = questions ?? [];
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
  return (
    <div className={id === null ? "inbox" : "inbox with-question"}>
      <section className="questions" aria-label="Questions">
        <div className="row">
          <h1>Inbox</h1>
          <button type="button" className="chip" aria-pressed={isMine} onClick={() => choose({ all: null })}>Mine</button>
          <button type="button" className="chip" aria-pressed={!isMine} onClick={() => choose({ all: "1" })}>All</button>
          <input ref={field} type="search" className="grow" aria-label="Filter the questions" placeholder="Filter" value={text}
            onChange={(event) => choose({ q: event.target.value }, { replace: true })} />
        </div>
        {error !== null && error !== undefined && <ProblemNote error={error} retry={retry} />}
        {questions !== undefined && <List questions={shown} selected={id} suffix={kept(chosen)} />}
        {questions?.length === 0 && <Nothing isMine={isMine} text={text} />}
      </section>
      {id !== null && (
        <Question key={id} id={id} next={() => open(shown[at + 1] ?? shown[at - 1])} hasNext={shown.length > 1} />
      )}
      {id === null && shown.length > 0 && <p className="muted pick">Choose a question, or press <kbd>j</kbd>.</p>}
    </div>
  );
}

function kept(chosen: URLSearchParams): string {
  return queryText({ all: chosen.get("all"), q: chosen.get("q") });
}

function List({ questions, selected, suffix }: { questions: ListedApproval[]; selected: string | null; suffix: string }): ReactElement {
  const now = useNow(1000);
  return (
    <ul>
      {questions.map((one) => (
        <li key={one.id}>
          <Link to={pathTo("inbox", one.id) + suffix} aria-current={one.id === selected ? "true" : undefined}>
            <span className="cut title"><bdi>{one.title || one.place}</bdi></span>
            <span className="muted">{dueText(one, now)}</span>
            <span className="cut muted mono"><bdi>{one.run}</bdi></span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

export function dueText(one: Pick<ListedApproval, "due_at" | "escalated">, now: number): string {
  if (one.escalated) return "escalated";
  if (!one.due_at) return "no limit";
  const due = Date.parse(one.due_at);
  return due < now ? "overdue" : `due in ${durationText(Math.max(1, Math.floor((due - now) / 1000)) * 1000)}`;
}

function Nothing({ isMine, text }: { isMine: boolean; text: string }): ReactElement {
  const { questions: others } = useQuestions({ isMine: false, text: "" });
  if (text) return <div className="empty"><p>No open question has “{text}” in its title, workflow or run.</p><button type="button" onClick={() => choose({ q: null })}>Clear the filter</button></div>;
  if (!isMine) return <div className="empty"><p>No run waits for an answer.</p></div>;
  return (
    <div className="empty">
      <p>No open questions for you.</p>
      {others !== undefined && others.length > 0 && (
        <button type="button" onClick={() => choose({ all: "1" })}>{others.length === 1 ? "1 waits for others" : `${others.length} wait for others`}</button>
      )}
    </div>
  );
}
