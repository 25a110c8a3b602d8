/** The places of a box that was reached many times. Failed ones come first if there are any. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type ReactElement } from "react";

import type { StandingView } from "../../api/schema";
import { tallyOf } from "../../parts/picture-look";
import { ProblemNote } from "../../parts/problem";
import { Sign } from "../../parts/state";
import { Took } from "../../parts/time";
import { MARK_SIGNS } from "../../shell/words";
import { select, selOf, type RunChosen } from "./chosen";
import { usePlacesOf, type Mark } from "./selection";

const ROW = 30;
const MARKS: Mark[] = ["failed", "working", "waiting", "queued", "done", "skipped"];

type Props = { chosen: RunChosen; box: string; standing: StandingView | undefined };

/** Return the moment that is shown; null for now. */
export function momentOf(chosen: RunChosen, standing: StandingView | undefined): string | null {
  return chosen.at === null ? null : (standing?.at ?? null);
}

export function PlaceList({ chosen, box, standing }: Props): ReactElement {
  const has = new Set(tallyOf(standing?.boxes[box]).map(({ mark }) => mark));
  const [mark, setMark] = useState<Mark | null>(has.has("failed") ? "failed" : null);
  const found = usePlacesOf(chosen, box, mark === null ? [] : [mark]);
  const rows = found.data?.pages.flatMap((page) => page.places) ?? [];
  const until = momentOf(chosen, standing);
  const list = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => list.current, estimateSize: () => ROW, overscan: 8 });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  useEffect(() => {
    if (last >= rows.length - 20 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <div className="place-list">
      <div className="row" role="group" aria-label="Which places">
        <button type="button" className="chip" aria-pressed={mark === null} onClick={() => setMark(null)}>all</button>
        {MARKS.filter((one) => has.has(one) || one === mark).map((one) => (
          <button key={one} type="button" className="chip" aria-pressed={mark === one} onClick={() => setMark(mark === one ? null : one)}>{MARK_SIGNS[one]} {one}</button>
        ))}
      </div>
      {found.error && <ProblemNote error={found.error} retry={() => void found.refetch()} />}
      {rows.length === 0 && !found.isPending && <p className="muted">No {mark ?? ""} place.</p>}
      <div ref={list} className="place-rows" role="table" aria-label="Places" aria-rowcount={hasNextPage ? -1 : rows.length} tabIndex={0}>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map(({ index, start }) => {
            const row = rows[index]!;
            return (
              <div key={row.number} role="row" aria-rowindex={index + 1} className="place-row" style={{ transform: `translateY(${start}px)`, height: ROW }}>
                <span role="cell"><Sign mark={row.mark} /><span className="unseen">{row.mark}</span></span>
                <span role="cell" className="cut"><button type="button" className="plain mono cut" title={row.place} onClick={() => select(selOf(row))}>{row.place}</button></span>
                <span role="cell" className="muted cut grow">{row.failure || row.why || ((row.attempts ?? 1) > 1 ? `${row.attempts} attempts` : "")}</span>
                <span role="cell"><Took from={row.started_at} to={row.ended_at ?? until} /></span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
