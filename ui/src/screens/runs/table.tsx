/** The table of runs: virtual rows, pages as they are scrolled to, and a place that does not move. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, type ReactElement } from "react";

import { ProblemNote } from "../../parts/problem";
import { useNarrow } from "../../parts/narrow";
import { counted } from "../../shell/words";
import type { FeedState, RunsFeed } from "./feed";
import { idsOf, isFull, ROWS_MAX } from "./list";
import { nowText, RunRow } from "./row";

type Props = {
  feed: RunsFeed;
  state: FeedState;
  tags: ReadonlyMap<string, string>;
  columns: string[];
  marked: ReadonlySet<string>;
  current: string;
  onMark: (id: string) => void;
  onMarkAll: (ids: string[]) => void;
  onCurrent: (id: string) => void;
};

const ROW_PX = 30;
const NARROW_ROW_PX = 56;
const OVERSCAN = 6;
const NEAR_TOP_PX = 8;

export function RunsTable(props: Props): ReactElement {
  const { feed, state, columns, marked, current } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const isNarrow = useNarrow();
  const ids = useMemo(() => idsOf(state.list), [state.list]);
  const rows = useVirtualizer({
    count: ids.length, getScrollElement: () => scroller.current, estimateSize: () => (isNarrow ? NARROW_ROW_PX : ROW_PX), overscan: OVERSCAN,
    getItemKey: (index) => ids[index]!,
  });
  const shown = rows.getVirtualItems();
  const [from, to] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? -1];
  useEffect(() => rows.measure(), [isNarrow, rows]);
  useEffect(() => feed.look(ids.slice(from, to + 1)), [feed, ids, from, to]);
  useEffect(() => {
    if (to >= ids.length - OVERSCAN - 1) feed.more();
  }, [feed, ids.length, to, state.list.next]);
  const currentAt = ids.indexOf(current);
  useEffect(() => {
    if (currentAt >= 0) rows.scrollToIndex(currentAt, { align: "auto" });
    // Only a change of the chosen row scrolls, never a change of the rows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [current]);
  const after = rows.getTotalSize() - (shown.at(-1)?.end ?? 0);
  const columnCount = 8 + columns.length;
  return (
    <div ref={scroller} className="runs-scroll" tabIndex={-1} onScroll={(event) => feed.setAtTop(event.currentTarget.scrollTop <= NEAR_TOP_PX)}>
      <table role="table" aria-label="Runs" aria-rowcount={state.list.next === null ? ids.length + 1 : -1} className={state.isAsking ? "runs-table asking" : "runs-table"} aria-busy={state.isAsking}>
        <Head {...props} ids={ids} />
        <tbody role="rowgroup">
          {from > 0 && <tr aria-hidden="true" className="spacer"><td colSpan={columnCount} style={{ height: shown[0]?.start ?? 0 }} /></tr>}
          {shown.map(({ index }) => {
            const row = state.list.rows.get(ids[index]!)!;
            return (
              <RunRow
                key={row.id} row={row} index={index} tag={props.tags.get(row.workflow + "\n" + row.version) ?? ""} now={nowText(row, state.waits)} columns={columns}
                isMarked={marked.has(row.id)} isCurrent={row.id === current} onMark={props.onMark} onCurrent={props.onCurrent}
              />
            );
          })}
          {after > 0 && <tr aria-hidden="true" className="spacer"><td colSpan={columnCount} style={{ height: after }} /></tr>}
        </tbody>
      </table>
      <Foot {...props} count={ids.length} />
    </div>
  );
}

function Head({ columns, marked, ids, onMarkAll }: Props & { ids: string[] }): ReactElement {
  const isAll = ids.length > 0 && ids.every((id) => marked.has(id));
  return (
    <thead role="rowgroup">
      <tr role="row" aria-rowindex={1}>
        <th role="columnheader" scope="col" className="c-mark">
          <label className="mark"><input type="checkbox" aria-label="Mark all rows that are loaded" checked={isAll} onChange={() => onMarkAll(isAll ? [] : ids)} /></label>
        </th>
        <th role="columnheader" scope="col" className="c-state">state</th>
        <th role="columnheader" scope="col" className="c-run">run</th>
        <th role="columnheader" scope="col" className="c-workflow">workflow</th>
        <th role="columnheader" scope="col" className="c-started">started</th>
        <th role="columnheader" scope="col" className="c-took">took</th>
        {columns.map((name) => <th role="columnheader" key={name} scope="col" className="c-attribute cut" title={name}><bdi>{name}</bdi></th>)}
        <th role="columnheader" scope="col" className="c-now">now</th>
        <th role="columnheader" scope="col" className="c-changed">changed</th>
      </tr>
    </thead>
  );
}

function Foot({ feed, state, count }: Props & { count: number }): ReactElement | null {
  if (state.moreError !== null) return <ProblemNote error={state.moreError} retry={feed.more} />;
  if (state.isAskingMore) return <p className="muted runs-foot">…</p>;
  if (isFull(state.list) && state.list.next !== null) return <p className="muted runs-foot">{counted(ROWS_MAX, "run")} are shown. Narrow the filter to see older ones.</p>;
  return state.list.next === null ? <p className="muted runs-foot">{counted(count, "run")}</p> : null;
}
