/** What the steps of a run printed and logged, as they print it. Only text: nothing in it is ever HTML. */
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactElement } from "react";

import { follow } from "../../api/live";
import type { LogLine } from "../../api/schema";
import { Moment } from "../../parts/time";
import { counted } from "../../shell/words";
import { printedRows, withLines, type PrintedRow } from "./printed-lines";

const NEAR_PX = 24;
const ROWS_SHOWN = 1_000;
const LOUD = new Set(["warning", "error", "critical"]);

export function Printed({ id }: { id: string }): ReactElement {
  const { lines, isKnown } = usePrinted(id);
  const rows = useMemo(() => printedRows(lines).slice(-ROWS_SHOWN), [lines]);
  const element = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  useLayoutEffect(() => {
    if (isAtEnd) element.current?.scrollTo({ top: element.current.scrollHeight });
  }, [rows, isAtEnd]);
  if (lines.length === 0) return isKnown ? <p className="muted log-none">No step of this run has printed or logged anything that was kept.</p> : <></>;
  return (
    <>
      <div
        className="output-text" ref={element} tabIndex={0} role="log" aria-label="What steps printed" aria-live="off"
        onScroll={({ currentTarget: at }) => setAtEnd(at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_PX)}
      >
        {rows.map((row) => <Row key={row.key} row={row} />)}
      </div>
      {!isAtEnd && <button type="button" className="log-pill" onClick={() => setAtEnd(true)}>Newest lines</button>}
    </>
  );
}

const Row = memo(function Row({ row }: { row: PrintedRow }): ReactElement {
  if (row.kind === "gap") return <div className="output-by">… {counted(row.lost, "line")} left out</div>;
  if (row.kind === "by") return <div className="output-by">{row.place}{row.attempt > 1 ? `, attempt ${row.attempt}` : ""}</div>;
  const { at, level, source, text } = row.line;
  const isPrinted = source === "stdout" || source === "stderr";
  return (
    <div className="printed-line" data-loud={LOUD.has(level)}>
      <span className="log-time"><Moment at={at} /></span>
      <pre className="output-piece">{isPrinted ? text : `${level} ${source}: ${text}`}</pre>
    </div>
  );
});

/** Follow what is printed. What comes in is put on the screen once per frame. */
function usePrinted(id: string): { lines: readonly LogLine[]; isKnown: boolean } {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [isKnown, setKnown] = useState(false);
  useEffect(() => {
    let waiting: LogLine[] = [];
    let frame = 0;
    const paint = (): void => {
      const added = waiting;
      waiting = [];
      frame = 0;
      setLines((known) => withLines(known, added));
    };
    const stop = follow(`/runs/${encodeURIComponent(id)}/logs/live`, {}, {
      onOpen: () => setKnown(true),
      onFrame: ({ event, data }) => {
        if (event !== "line") return;
        waiting.push(data as LogLine);
        frame ||= requestAnimationFrame(paint);
      },
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
      setLines([]);
    };
  }, [id]);
  return { lines, isKnown };
}
