/** Open questions, and answering one. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { api, Problem, read } from "../../api/client";
import { follow } from "../../api/live";
import { useAsked } from "../../api/queries";
import type { ApprovalDetail, ListedApproval } from "../../api/schema";

const PAGE = 100;
const AGAIN_MS = 5000;

const KEPT_MAX = 10 * PAGE;

type Questions = {
  questions: ListedApproval[] | undefined;
  /** Whether there are more than are kept. */
  isCut: boolean;
  error: unknown;
  retry: () => void;
};

/** Return the open questions, those that are due first at the top. */
export function useQuestions(): Questions {
  const asked = useAsked(["questions"], async (signal) => {
    const found: ListedApproval[] = [];
    for (let cursor: string | null | undefined; ; ) {
      const query = { limit: PAGE, ...(cursor ? { cursor } : {}) };
      const page = await read(api.GET("/api/v1/approvals", { params: { query }, signal }));
      found.push(...page.approvals);
      cursor = page.cursor;
      if (!cursor || found.length >= KEPT_MAX) return { questions: found.sort(byDue), isCut: Boolean(cursor) };
    }
  }, { refetchMs: AGAIN_MS });
  useLiveQuestions();
  return { questions: asked.data?.questions, isCut: asked.data?.isCut ?? false, error: asked.error, retry: () => void asked.refetch() };
}

/** Whether a question has a text in its title, workflow or run. */
export function hasText(question: ListedApproval, text: string): boolean {
  return `${question.title} ${question.workflow} ${question.run}`.toLowerCase().includes(text.trim().toLowerCase());
}

export function byDue(a: ListedApproval, b: ListedApproval): number {
  const due = (one: ListedApproval): number => (one.due_at ? Date.parse(one.due_at) : Infinity);
  const [x, y] = [due(a), due(b)];
  if (x !== y) return x - y;
  return Date.parse(a.since) - Date.parse(b.since) || (a.id < b.id ? -1 : 1);
}

function useLiveQuestions(): void {
  const client = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void client.invalidateQueries({ queryKey: ["questions"] });
        void client.invalidateQueries({ queryKey: ["question-count"] });
        void client.invalidateQueries({ queryKey: ["question"] });
      }, 200);
    };
    const stop = follow("/live", {}, {
      onFrame: (frame) => {
        if (frame.event === "gap" || frame.event.startsWith("ask_")) again();
      },
      onOpen: (isAgain) => isAgain && again(),
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [client]);
}

export type Answer = { isApproved: boolean; by: string; reason: string; form: unknown; digest: string };

/** Send an answer. Throws Problem. */
export async function sendAnswer(question: string, answer: Answer): Promise<void> {
  const body = {
    approved: answer.isApproved,
    reason: answer.reason,
    digest: answer.digest,
    ...(answer.by ? { by: answer.by } : {}),
    ...(answer.form === undefined ? {} : { form: answer.form }),
  };
  await read(api.POST("/api/v1/approvals/{id}/decision", { params: { path: { id: question } }, body }));
}

/** Whether an answer was refused because somebody else was faster. */
export function isDecided(error: unknown): boolean {
  return error instanceof Problem && error.status === 409 && error.code.includes("decided");
}

/** Whether an answer was refused because the question is not the one that was shown. */
export function hasChanged(error: unknown): boolean {
  return error instanceof Problem && error.code === "ask.other_subject";
}

/** Return one question, open or decided. */
export function useQuestion(id: string): { question: ApprovalDetail | undefined; error: unknown; retry: () => void } {
  const asked = useAsked(["question", id], (signal) => read(api.GET("/api/v1/approvals/{id}", { params: { path: { id } }, signal })), { keepPrevious: false, refetchMs: AGAIN_MS });
  return { question: asked.data, error: asked.error, retry: () => void asked.refetch() };
}
