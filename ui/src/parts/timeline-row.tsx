/** One row of the timeline: a box or one of its places. */
import { memo, type ReactElement } from "react";

import type { BoxStanding, TimelineRow } from "../api/schema";
import { MARK_SIGNS, counted, type Mark } from "../shell/words";
import { useSettings } from "../shell/settings";
import { barsOf, countsPath } from "./timeline-bars";
import { columnEdges } from "./timeline-columns";
import type { TimelineControl } from "./timeline-data";
import { xOf, type Scale } from "./timeline-scale";
import { durationText, momentText } from "./times";

export const ROW_PX = 24;
const BAR_PX = 18;

export type ShownRow = {
  key: string;
  level: 1 | 2;
  row: TimelineRow;
  title: string;
  standing: BoxStanding | undefined;
  isOpen: boolean | null;
  isSelected: boolean;
  /** What a click selects. */
  sel: string;
};

type Props = { shown: ShownRow; control: TimelineControl; barsMax: number; onOpen: () => void };

export function RowLabel({ shown, onOpen }: { shown: ShownRow; onOpen: () => void }): ReactElement {
  const { row, title, isOpen, level } = shown;
  return (
    <div role="rowheader" className={`tl-label level-${level}`}>
      {isOpen === null ? <span className="tl-expander" /> : (
        <button type="button" className="plain tl-expander" tabIndex={-1} aria-label={isOpen ? "Close" : "Open"} onClick={(event) => {
          event.stopPropagation();
          onOpen();
        }}>{isOpen ? "▾" : "▸"}</button>
      )}
      {level === 2 && <span className={`sign mark-${row.mark ?? "idle"}`} aria-hidden="true">{MARK_SIGNS[row.mark ?? "idle"]}</span>}
      <span className="cut" title={title}>{title}</span>
      {level === 1 && row.places > 1 && <span className="muted num">×{row.places.toLocaleString("en")}</span>}
    </div>
  );
}

export const RowBars = memo(function RowBars({ shown, control, barsMax }: Omit<Props, "onOpen">): ReactElement {
  const { row, standing } = shown;
  const { scale, now, data } = control;
  const { zone } = useSettings();
  const description = describe(row, standing, now, zone);
  if (row.columns?.length && data) {
    const edges = columnEdges(data, row.columns.length).map((ms) => clip(scale, ms));
    const isOpen = (row.until ?? null) === null && now > data.until && scale.view.until > data.until;
    const counts = isOpen ? [...row.columns, row.columns.at(-1) ?? 0] : row.columns;
    const path = countsPath(counts, isOpen ? [...edges, clip(scale, now)] : edges, BAR_PX);
    return (
      <div role="gridcell" className="tl-plot" title={description}>
        <svg className="tl-counts" width={scale.width} height={BAR_PX} aria-hidden="true"><path d={path} /></svg>
        <span className="tl-tally num" style={tallyAt(row, scale, now)}>{tally(standing)}</span>
        <span className="unseen">{description}</span>
      </div>
    );
  }
  const { bars, crosses } = barsOf(row, scale, now, barsMax);
  return (
    <div role="gridcell" className="tl-plot" title={description}>
      {bars.map((bar) => <i key={`${bar.number}-${bar.x}`} className={`tl-bar look-${bar.look}`} style={{ left: bar.x, width: bar.width }} />)}
      {crosses.map((x) => <i key={x} className="tl-cross" style={{ left: x }} aria-hidden="true">✗</i>)}
      <span className="unseen">{description}</span>
    </div>
  );
});

function clip(scale: Scale, ms: number): number {
  return Math.min(scale.width, Math.max(0, xOf(scale, ms)));
}

const TALLY: ["done" | "open" | "failed" | "skipped", Mark][] = [["done", "done"], ["open", "working"], ["failed", "failed"], ["skipped", "skipped"]];

function tally(standing: BoxStanding | undefined): string {
  return TALLY.filter(([name]) => standing?.[name]).map(([name, mark]) => `${standing![name]} ${MARK_SIGNS[mark]}`).join(" ");
}

/** The tally stands right of the counts, or left of them where there is no space. */
function tallyAt(row: TimelineRow, scale: Scale, now: number): { left?: number; right?: number } {
  const end = clip(scale, row.until ?? now);
  if (scale.width - end > 110) return { left: end + 6 };
  const begin = clip(scale, row.since);
  return begin > 110 ? { right: scale.width - begin + 6 } : { left: begin + 4 };
}

/** Say what the bars show. */
function describe(row: TimelineRow, standing: BoxStanding | undefined, now: number, zone: "local" | "utc"): string {
  const began = momentText(row.since, zone, false);
  const took = durationText((row.until ?? now) - row.since);
  const until = row.until ?? null;
  const times = until === null ? `since ${began}, for ${took}` : `${began} – ${momentText(until, zone, false)} (${took})`;
  const failed = (row.spans ?? []).filter((span) => span.retries).length;
  return [times, row.places > 1 ? tally(standing) : "", failed ? counted(failed, "failed attempt") : ""].filter(Boolean).join(" · ");
}
