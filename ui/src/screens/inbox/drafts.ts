/** What was typed into an answer and not sent yet. It stays in this browser until the question is decided. */
import type { Draft } from "../../parts/form-values";

export type AnswerDraft = { form: Draft | null; reason: string };

const PREFIX = "weft.answer:";
const KEPT_MAX = 100;

export function loadDraft(question: string): AnswerDraft | null {
  try {
    const text = localStorage.getItem(PREFIX + question);
    return text === null ? null : (JSON.parse(text) as AnswerDraft);
  } catch {
    return null;
  }
}

export function keepDraft(question: string, draft: AnswerDraft): void {
  try {
    localStorage.setItem(PREFIX + question, JSON.stringify(draft));
    forgetOldest();
  } catch {
    // A full or closed storage: the draft lives as long as the page.
  }
}

export function forgetDraft(question: string): void {
  try {
    localStorage.removeItem(PREFIX + question);
  } catch {
    // Nothing was kept.
  }
}

function forgetOldest(): void {
  const kept = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
  for (const name of kept.slice(0, Math.max(0, kept.length - KEPT_MAX))) localStorage.removeItem(name);
}
