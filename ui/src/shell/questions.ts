/** How many questions wait for me. */
import { useEffect } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";

const PAGE = 100;
const PAGES_MAX = 10;

/** Return how many questions wait for me, with a plus if there are more; nothing if none do. */
export function useQuestionCount(): string {
  const asked = useAsked(["question-count"], countMine, { refetchMs: 5000 });
  return asked.data ?? "";
}

/** Count the questions of the first page that has any for me: with many for others, that may be a later one. */
async function countMine(signal: AbortSignal): Promise<string> {
  let cursor: string | null | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const query = { mine: true, limit: PAGE, ...(cursor ? { cursor } : {}) };
    const page = await read(api.GET("/api/v1/approvals", { params: { query }, signal }));
    const count = page.approvals.length;
    cursor = page.cursor;
    if (count > 0) return `${count}${cursor ? "+" : ""}`;
    if (!cursor) break;
  }
  return "";
}

/** Set the title of the page: state and name first. */
export function useTitle(title: string): void {
  const count = useQuestionCount();
  useEffect(() => {
    document.title = `${count && `(${count}) `}${title} · Weft`;
  }, [title, count]);
}
