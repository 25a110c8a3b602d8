/** One question: what is decided, the form, and the two buttons. What is sent is what was on the screen. */
import { useEffect, useMemo, useRef, useState, type ReactElement } from "react";

import { Problem } from "../../api/client";
import { queries } from "../../api/queries";
import type { ApprovalDetail } from "../../api/schema";
import { Form } from "../../parts/form";
import { formFindings } from "../../parts/form-findings";
import { schemaForm } from "../../parts/form-schema";
import { allFindings, formToJson, newDraft, type FormFinding } from "../../parts/form-values";
import { ProblemNote } from "../../parts/problem";
import { MarkWord } from "../../parts/state";
import { Age } from "../../parts/time";
import { Value } from "../../parts/values";
import { runPath } from "../../shell/address";
import { useNow } from "../../shell/clock";
import { useActions } from "../../shell/actions";
import { useKeys } from "../../shell/keys";
import { Link } from "../../shell/link";
import { sayUrgently, toast } from "../../shell/notices";
import { useMe } from "../../shell/session";
import { settings } from "../../shell/settings";
import { hasChanged, isDecided, sendAnswer, useQuestion } from "./data";
import { forgetDraft, keepDraft, loadDraft, type AnswerDraft } from "./drafts";
import { LastLook } from "./last-look";
import { dueText } from "./list";
import { PersonLinks } from "./links";

const ANSWERS = [{ keys: "a", does: "Approve", isApproved: true }, { keys: "r", does: "Reject", isApproved: false }] as const;

type Props = { id: string; next: () => void; hasNext: boolean };

export function Question({ id, next, hasNext }: Props): ReactElement {
  const { question, error, retry } = useQuestion(id);
  if (question === undefined) {
    return (
      <section className="question" aria-label="Question">
        {error ? <ProblemNote error={error} retry={retry} /> : null}
        <Link to="/inbox">Back to the list</Link>
      </section>
    );
  }
  return <Shown key={id} question={question} next={next} hasNext={hasNext} />;
}

function Shown({ question, next, hasNext }: { question: ApprovalDetail; next: () => void; hasNext: boolean }): ReactElement {
  // What the person looks at stays as it was shown, even if the question changes meanwhile.
  const [seen, setSeen] = useState(question);
  const answer = useAnswer(seen, next);
  const now = useNow(1000);
  const isOutdated = question.outcome === "open" && question.digest !== seen.digest;
  const acts = question.outcome === "open" && question.may.allowed ? ANSWERS : [];
  useKeys("Question", acts.map(({ keys, does, isApproved }) => ({ keys, does, run: () => answer.look(isApproved) })));
  useActions(acts.map(({ keys, does, isApproved }) => ({ title: `${does}: ${seen.title || seen.place}`, about: keys, run: () => answer.look(isApproved) })));
  return (
    <section className="question" aria-label="Question">
      <Link to="/inbox" className="back">‹ All questions</Link>
      <div className="row">
        <h2 className="grow"><bdi>{seen.title || seen.place}</bdi></h2>
        {question.outcome === "open" ? <MarkWord mark="waiting" word={dueText(question, now)} /> : <MarkWord mark={question.outcome === "approved" ? "done" : "failed"} word={question.outcome.replace("_", " ")} />}
      </div>
      <p className="muted">
        asked by <Link to={runPath(seen.run, { sel: seen.place })}><bdi>{seen.run}</bdi></Link> at <code><bdi>{seen.place}</bdi></code> · <Age at={seen.since} />
        {seen.of.length > 0 && <> · of <bdi>{seen.of.join(", ")}</bdi></>}
      </p>
      <Votes question={question} />
      {isOutdated && <Changed before={seen} after={question} onTake={() => setSeen(question)} />}
      <div className="about">
        <div className="row"><h3 className="grow">You decide on</h3><span className="muted mono" title="The digest of what is shown; it is sent with the answer">digest {seen.digest.slice(0, 4)}·{seen.digest.slice(4, 8)}</span></div>
        {seen.about !== null && seen.about !== undefined ? <Value value={seen.about} /> : <p className="muted">The title is all that was given.</p>}
      </div>
      {question.outcome === "open" && seen.form && answer.draft.form && (
        <Form schema={seen.form} value={answer.draft.form} findings={answer.findings} label="Answer" onChange={(form) => answer.change({ ...answer.draft, form })} />
      )}
      {question.outcome === "open" && (
        <label className="column reason"><span>Reason <span className="muted optional">optional</span></span>
          <input value={answer.draft.reason} maxLength={1000} onChange={(event) => answer.change({ ...answer.draft, reason: event.target.value })} />
        </label>
      )}
      {answer.error !== null && <ProblemNote error={answer.error} />}
      <Buttons question={question} onLook={answer.look} />
      {question.outcome !== "open" && answer.isUnsent && <Unsent answer={answer} />}
      {answer.looking !== null && question.outcome === "open" && (
        <LastLook question={seen} isApproved={answer.looking} reason={answer.draft.reason} form={answer.form} isLast={!hasNext} onSend={answer.send} onBack={answer.back} />
      )}
    </section>
  );
}

function Buttons({ question, onLook }: { question: ApprovalDetail; onLook: (isApproved: boolean) => void }): ReactElement {
  const { allowed, why_not: why } = question.may;
  return (
    <>
      {!allowed && <p className="notice">{why}</p>}
      <div className="buttons">
        {question.outcome === "open" && (
          <>
            <button type="button" className="primary" disabled={!allowed} onClick={() => onLook(true)}>✓ Approve</button>
            <button type="button" className="danger" disabled={!allowed} onClick={() => onLook(false)}>✗ Reject</button>
          </>
        )}
        <span className="grow" />
        <span className="row">
          {question.outcome === "open" && <PersonLinks question={question} />}
          <Link to={runPath(question.run, { sel: question.place })}>Open the run</Link>
        </span>
      </div>
    </>
  );
}

function Votes({ question }: { question: ApprovalDetail }): ReactElement | null {
  const { votes, quorum, of } = question;
  const needed = quorum === "all" ? Math.max(1, of.length) : typeof quorum === "number" ? quorum : 1;
  const approvals = votes.filter((vote) => vote.approved).length;
  if (votes.length === 0 && needed === 1) return null;
  return (
    <div>
      {needed > 1 && <p>{approvals} of {needed} {approvals === 1 ? "has" : "have"} approved</p>}
      <ul className="votes">
        {votes.map((vote, at) => (
          <li key={at}><MarkWord mark={vote.approved ? "done" : "failed"} word={vote.approved ? "approved" : "rejected"} /> by <bdi>{vote.by || "somebody"}</bdi>, <Age at={vote.at} /> {vote.reason && <>“<bdi>{vote.reason}</bdi>”</>}</li>
        ))}
      </ul>
    </div>
  );
}

function Changed({ before, after, onTake }: { before: ApprovalDetail; after: ApprovalDetail; onTake: () => void }): ReactElement {
  return (
    <div className="notice column" role="alert">
      <strong>The question has changed since you opened it. Nothing was decided.</strong>
      <div className="pair">
        <div><Value label="Before" value={{ title: before.title, about: before.about }} /></div>
        <div><Value label="Now" value={{ title: after.title, about: after.about }} /></div>
      </div>
      <span><button type="button" onClick={onTake}>Show the new question</button></span>
    </div>
  );
}

/** What was typed before somebody else was faster. */
function Unsent({ answer }: { answer: Answering }): ReactElement {
  const { draft, form } = answer;
  return (
    <section className="about column" aria-label="Not sent">
      <div className="row"><h3 className="grow">What you typed was not sent</h3><button type="button" onClick={answer.forget}>Forget it</button></div>
      {draft.reason && <p>Reason: <bdi>{draft.reason}</bdi></p>}
      {draft.form && <Value value={form ?? draft.form} />}
    </section>
  );
}

type Answering = {
  draft: AnswerDraft; form: unknown; findings: FormFinding[]; error: unknown; looking: boolean | null;
  /** Whether something was typed that was not sent. */
  isUnsent: boolean;
  change: (draft: AnswerDraft) => void; look: (isApproved: boolean) => void; send: () => void; back: () => void; forget: () => void;
};

function useAnswer(question: ApprovalDetail, next: () => void): Answering {
  const me = useMe();
  const field = useMemo(() => (question.form ? schemaForm(question.form) : null), [question.form]);
  const [kept, setKept] = useState<AnswerDraft | null>(() => loadDraft(question.id));
  const draft = useMemo(() => kept ?? { form: question.form ? newDraft(question.form) : null, reason: "" }, [kept, question.form]);
  const [findings, setFindings] = useState<FormFinding[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [looking, setLooking] = useState<boolean | null>(null);
  const isSending = useRef(false);
  const read = field && draft.form ? formToJson(field, draft.form) : { value: undefined, findings: [] };
  useEffect(() => () => setLooking(null), []);

  const failed = (problem: unknown): void => {
    setLooking(null);
    const found = problem instanceof Problem ? formFindings(problem.details.findings, "form") : [];
    setFindings(found);
    setError(problem);
    if (hasChanged(problem) || isDecided(problem)) void queries.invalidateQueries({ queryKey: ["question"] });
    sayUrgently(problem instanceof Error ? problem.message : "The answer was not sent.");
  };
  const forget = (): void => {
    forgetDraft(question.id);
    setKept(null);
  };
  const look = (isApproved: boolean): void => {
    if (!question.may.allowed) return;
    const found = isApproved && field ? allFindings(field, read) : [];
    setFindings(found);
    setError(null);
    if (found.length === 0) setLooking(isApproved);
    else sayUrgently("The form is not complete yet.");
  };
  const send = (): void => {
    if (isSending.current || looking === null) return;
    isSending.current = true;
    const by = me?.groups === null ? settings().name : "";
    sendAnswer(question.id, { isApproved: looking, by, reason: draft.reason, form: read.value, digest: question.digest })
      .then(() => {
        forget();
        toast(looking ? "Approved" : "Rejected");
        setLooking(null);
        void queries.invalidateQueries({ queryKey: ["questions"] });
        void queries.invalidateQueries({ queryKey: ["question-count"] });
        next();
      }, failed)
      .finally(() => {
        isSending.current = false;
      });
  };
  const change = (changed: AnswerDraft): void => {
    setKept(changed);
    keepDraft(question.id, changed);
  };
  return { draft, isUnsent: kept !== null, form: read.value, findings, error, looking, change, look, send, back: () => setLooking(null), forget };
}
