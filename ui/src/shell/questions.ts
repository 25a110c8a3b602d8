/** How many questions wait for me. */
import { useEffect } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";

export function useQuestionCount(): number {
  const asked = useAsked(["question-count"], (signal) => read(api.GET("/api/v1/approvals", { params: { query: { mine: true, limit: 100 } }, signal })), { refetchMs: 5000 });
  return asked.data?.approvals.length ?? 0;
}

/** Set the title of the page: state and name first. */
export function useTitle(title: string): void {
  const count = useQuestionCount();
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ""}${title} · Weft`;
  }, [title, count]);
}
