/** The list of questions. Only the rows in sight are in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ReactElement } from "react";

import type { ListedApproval } from "../../api/schema";
import { durationText } from "../../parts/times";
import { pathTo } from "../../shell/address";
import { useNow } from "../../shell/clock";
import { Link } from "../../shell/link";

const ROW_PX = 53;
const OVERSCAN = 6;

type Props = { questions: ListedApproval[]; selected: string | null; suffix: string };

export function QuestionList({ questions, selected, suffix }: Props): ReactElement {
  const now = useNow(1000);
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: questions.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: OVERSCAN,
    getItemKey: (index) => questions[index]!.id,
  });
  useEffect(() => {
    const at = questions.findIndex((one) => one.id === selected);
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
    // Only another selection scrolls, never a change of the questions.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [selected]);
  return (
    <div ref={scroller} className="questions-scroll">
      <ul style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start, key }) => {
          const one = questions[index]!;
          return (
            <li key={key} aria-setsize={questions.length} aria-posinset={index + 1} style={{ top: start, height: ROW_PX }}>
              <Link to={pathTo("inbox", one.id) + suffix} aria-current={one.id === selected ? "true" : undefined}>
                <span className="cut title"><bdi>{one.title || one.place}</bdi></span>
                <span className="muted">{dueText(one, now)}</span>
                <span className="cut muted mono"><bdi>{one.run}</bdi></span>
              </Link>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

export function dueText(one: Pick<ListedApproval, "due_at" | "escalated">, now: number): string {
  if (one.escalated) return "escalated";
  if (!one.due_at) return "no limit";
  const due = Date.parse(one.due_at);
  return due < now ? "overdue" : `due in ${durationText(Math.max(1, Math.floor((due - now) / 1000)) * 1000)}`;
}
