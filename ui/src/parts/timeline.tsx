/** When the boxes of a run worked and waited: a row per box, in the order in which they began. */
import "./timeline.css";

import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactElement, type RefObject } from "react";

import { select, type RunChosen } from "../screens/run/chosen";
import { useKeys } from "../shell/keys";
import { ProblemNote } from "./problem";
import { Axis, groupLines, LineSigns } from "./timeline-axis";
import { BARS_MAX } from "./timeline-bars";
import { useTimeline, type TimelineControl } from "./timeline-data";
import { RowBars, RowLabel, ROW_PX, type ShownRow } from "./timeline-row";
import { useShownRows, type ShownRows } from "./timeline-rows";
import { xOf } from "./timeline-scale";

const ZOOM = 1.5;
const PAN_PX = 120;
const DRAG_MIN_PX = 4;
/** Until it is measured. */
const WIDTH_PX = 600;

export function Timeline({ run, automatic }: { run: RunChosen; automatic: string | null }): ReactElement {
  const axis = useRef<HTMLDivElement>(null);
  const measured = useWidth(axis);
  const width = measured ?? WIDTH_PX;
  const control = useTimeline(run, automatic, width, measured !== null);
  const rows = useShownRows(run, control.data);
  useKeys("Timeline", [
    { keys: "0", does: "Show all of the timeline", run: control.showAll },
    { keys: "End", does: "Follow what happens now", run: control.follow },
  ]);
  const wheel = useWheel(control);
  const groups = control.data ? groupLines(control.data.lines, control.scale) : [];
  return (
    <section className="timeline" aria-label="Timeline" ref={wheel}>
      <div className="tl-scroll" data-following={control.isFollowing}>
        <div className="tl-head">
          <div className="tl-label"><Buttons control={control} width={width} /></div>
          <div className="tl-plot-head" ref={axis}>
            <Axis control={control} />
            {groups.length > 0 && <LineSigns groups={groups} />}
          </div>
        </div>
        {control.error !== null && <ProblemNote error={control.error} retry={control.retry} />}
        {control.data && rows.rows.length === 0 && (
          <p className="muted tl-none">{run.q ? `Nothing here matches “${run.q}”.` : "No step has begun."}</p>
        )}
        <Rows control={control} rows={rows} marks={groups.map((group) => group.x)} at={run.at === null ? null : control.now} />
      </div>
    </section>
  );
}

function Buttons({ control, width }: { control: TimelineControl; width: number }): ReactElement {
  return (
    <div className="tl-buttons">
      <button type="button" aria-pressed={control.isFollowing} title="Follow what happens now (End)" onClick={control.follow}>Now</button>
      <button type="button" title="Show all (0)" onClick={control.showAll}>All</button>
      <button type="button" aria-label="Zoom out" title="Zoom out (Ctrl and wheel)" onClick={() => control.zoom(width / 2, 1 / ZOOM)}>−</button>
      <button type="button" aria-label="Zoom in" title="Zoom in (Ctrl and wheel)" onClick={() => control.zoom(width / 2, ZOOM)}>+</button>
    </div>
  );
}

type RowsProps = { control: TimelineControl; rows: ShownRows; marks: number[]; at: number | null };

function Rows({ control, rows, marks, at }: RowsProps): ReactElement {
  const body = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({
    count: rows.rows.length,
    getScrollElement: () => body.current?.parentElement ?? null,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => rows.rows[index]?.key ?? index,
    overscan: 4,
  });
  const items = virtual.getVirtualItems();
  const barsMax = Math.floor(BARS_MAX / Math.max(1, items.length));
  const onKeyDown = useRowKeys(rows, active, (index) => {
    setActive(index);
    virtual.scrollToIndex(index);
  }, control);
  const drag = useDragPan(control);
  return (
    <div
      ref={body} role="treegrid" aria-label="Timeline" aria-rowcount={rows.rows.length} aria-readonly="true" tabIndex={0} className="tl-rows"
      aria-activedescendant={items.some((item) => item.index === active) ? `tl-row-${active}` : undefined}
      style={{ height: virtual.getTotalSize() }} onKeyDown={onKeyDown} {...drag}
    >
      {items.map((item) => {
        const shown = rows.rows[item.index]!;
        return (
          <div
            key={item.key} id={`tl-row-${item.index}`} role="row" aria-rowindex={item.index + 1} aria-level={shown.level} aria-selected={shown.isSelected}
            aria-expanded={shown.isOpen ?? undefined} className="tl-row" data-active={item.index === active} style={{ transform: `translateY(${item.start}px)` }}
            onClick={() => {
              setActive(item.index);
              select(shown.sel);
            }}
          >
            <RowLabel shown={shown} onOpen={() => rows.open(shown)} />
            <RowBars shown={shown} control={control} barsMax={barsMax} />
          </div>
        );
      })}
      <div className="tl-lines" aria-hidden="true">
        {marks.map((x) => <i key={x} style={{ left: x }} />)}
        {control.scale.pieces.map(({ gap, x, width }) => gap && <i key={`gap${gap.since}`} className="tl-fold" style={{ left: x, width }} />)}
        {at !== null && <i className="tl-at" style={{ left: Math.min(control.scale.width - 2, xOf(control.scale, at)) }} />}
      </div>
      {rows.more.map(({ box, more }) => <button key={box} type="button" className="plain tl-more" tabIndex={-1} style={{ top: virtual.getTotalSize() }} onClick={more}>More places of {box}</button>)}
    </div>
  );
}

/** Keys while the rows have the focus. */
function useRowKeys(rows: ShownRows, active: number, go: (index: number) => void, control: TimelineControl): (event: KeyboardEvent) => void {
  return (event) => {
    const shown: ShownRow | undefined = rows.rows[active];
    const last = rows.rows.length - 1;
    const acts: Record<string, (() => void) | undefined> = {
      ArrowDown: () => go(Math.min(last, active + 1)),
      ArrowUp: () => go(Math.max(0, active - 1)),
      ArrowRight: () => (event.shiftKey ? control.pan(PAN_PX) : shown?.isOpen === false && rows.open(shown)),
      ArrowLeft: () => (event.shiftKey ? control.pan(-PAN_PX) : shown?.isOpen && rows.open(shown)),
      Enter: () => shown && select(shown.sel),
      "+": () => control.zoom(control.scale.width / 2, ZOOM),
      "-": () => control.zoom(control.scale.width / 2, 1 / ZOOM),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    event.preventDefault();
    act();
  };
}

/** Dragging the rows sideways moves the window. */
function useDragPan(control: TimelineControl): object {
  const last = useRef<number | null>(null);
  const moved = useRef(0);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0 && event.pointerType === "mouse") last.current = event.clientX;
      moved.current = 0;
    },
    onPointerMove: (event: PointerEvent<HTMLDivElement>) => {
      if (last.current === null) return;
      const by = last.current - event.clientX;
      if (moved.current === 0 && Math.abs(by) < DRAG_MIN_PX) return;
      if (moved.current === 0) event.currentTarget.setPointerCapture(event.pointerId);
      moved.current += Math.abs(by);
      last.current = event.clientX;
      control.pan(by);
    },
    onPointerUp: () => {
      last.current = null;
    },
    onClickCapture: (event: { stopPropagation: () => void }) => {
      if (moved.current > 0) event.stopPropagation();
    },
  };
}

/** Ctrl and the wheel zoom around the pointer; a sideways wheel moves the window. */
function useWheel(control: TimelineControl): (element: HTMLElement | null) => (() => void) | undefined {
  const kept = useRef(control);
  useEffect(() => {
    kept.current = control;
  });
  return useCallback((element: HTMLElement | null) => {
    if (element === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (!event.ctrlKey && Math.abs(sideways) <= Math.abs(event.deltaY) * (event.shiftKey ? 0 : 1)) return;
      event.preventDefault();
      const plot = element.querySelector(".tl-plot-head")?.getBoundingClientRect();
      if (event.ctrlKey && plot) kept.current.zoom(Math.max(0, event.clientX - plot.left), Math.exp(-event.deltaY / 400));
      else kept.current.pan(sideways);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);
}

/** Return the width of an element; null until it is in sight. */
function useWidth(element: RefObject<HTMLElement | null>): number | null {
  const [width, setWidth] = useState<number | null>(null);
  useEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => entry && entry.contentRect.width > 0 && setWidth(Math.max(40, Math.floor(entry.contentRect.width))));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
