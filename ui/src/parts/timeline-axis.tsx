/** The axis of the timeline: ticks, breaks of folded gaps, and the lines that lie across all rows. */
import { useRef, useState, type PointerEvent, type ReactElement } from "react";

import type { TimelineLine } from "../api/schema";
import { travel } from "../screens/run/chosen";
import { useSettings } from "../shell/settings";
import type { TimelineControl } from "./timeline-data";
import { ticksOf, xOf, type Scale } from "./timeline-scale";
import { durationText, momentText } from "./times";

const DRAG_MIN_PX = 4;
const LINE_PX = 26;
const SIGNS: Record<TimelineLine["kind"], string> = {
  message: "✉", answer: "✓", pause: "‖", resume: "▸", retry: "↻", patch: "±", takeover: "⇄",
};
const WORDS: Record<TimelineLine["kind"], string> = {
  message: "message", answer: "answer", pause: "paused", resume: "resumed", retry: "retried", patch: "changed", takeover: "taken over",
};

export function Axis({ control }: { control: TimelineControl }): ReactElement {
  const { scale } = control;
  const { zone } = useSettings();
  const drag = useAxisDrag(control);
  const offset = zone === "utc" ? 0 : -new Date(scale.view.since).getTimezoneOffset() * 60_000;
  return (
    <div className="tl-axis" {...drag.handlers} title="Drag to zoom in">
      {control.data && ticksOf(scale, offset).map((tick) => (
        <span key={tick.ms} className="tl-tick num" style={{ left: tick.x }}>{tickText(tick.ms, tick.step, zone)}</span>
      ))}
      {drag.range && <div className="tl-range" style={{ left: drag.range[0], width: drag.range[1] - drag.range[0] }} />}
      <Breaks control={control} />
    </div>
  );
}

function tickText(ms: number, step: number, zone: "local" | "utc"): string {
  const text = momentText(ms, zone);
  if (step >= 86_400_000) return text.slice(0, 10);
  if (step >= 3_600_000) return text.slice(5, 16);
  return step >= 1000 ? text.slice(11, 19) : text.slice(11);
}

function Breaks({ control }: { control: TimelineControl }): ReactElement {
  return (
    <>
      {control.scale.pieces.map(({ gap, x, width }) => gap && (
        <button
          key={gap.since} type="button" className="tl-break" style={{ left: x, width }}
          title={`Nothing happened for ${durationText(gap.until - gap.since)}. Click to unfold.`}
          onPointerDown={(event) => event.stopPropagation()} onClick={() => control.openGap(gap)}
        >
          <span className="unseen">Unfold the gap of </span>{durationText(gap.until - gap.since)}
        </button>
      ))}
    </>
  );
}

/** A drag along the axis shows the time between its ends. */
function useAxisDrag(control: TimelineControl): { range: [number, number] | null; handlers: object } {
  const start = useRef<number | null>(null);
  const [range, setRange] = useState<[number, number] | null>(null);
  const xIn = (event: PointerEvent<HTMLDivElement>): number => event.clientX - event.currentTarget.getBoundingClientRect().left;
  const finish = (): void => {
    start.current = null;
    setRange(null);
  };
  return {
    range,
    handlers: {
      onPointerDown: (event: PointerEvent<HTMLDivElement>) => {
        if (event.button !== 0) return;
        start.current = xIn(event);
        event.currentTarget.setPointerCapture(event.pointerId);
      },
      onPointerMove: (event: PointerEvent<HTMLDivElement>) => {
        if (start.current === null) return;
        const x = Math.min(control.scale.width, Math.max(0, xIn(event)));
        setRange([Math.min(start.current, x), Math.max(start.current, x)]);
      },
      onPointerUp: () => {
        if (range && range[1] - range[0] >= DRAG_MIN_PX) control.show(range[0], range[1]);
        finish();
      },
      onPointerCancel: finish,
    },
  };
}

type Group = { x: number; lines: TimelineLine[] };

/** Lines whose signs would overlap share one. */
export function groupLines(lines: TimelineLine[], scale: Scale): Group[] {
  const groups: Group[] = [];
  for (const line of lines) {
    if (line.at < scale.view.since || line.at > scale.view.until) continue;
    const x = xOf(scale, line.at);
    const last = groups.at(-1);
    if (last && x - last.x < LINE_PX) last.lines.push(line);
    else groups.push({ x, lines: [line] });
  }
  return groups;
}

/** Signs of what acted on the run. A click goes to the event. */
export function LineSigns({ groups }: { groups: Group[] }): ReactElement {
  const { zone } = useSettings();
  return (
    <div className="tl-signs">
      {groups.map(({ x, lines }) => {
        const first = lines[0]!;
        const text = lines.slice(0, 8).map((line) => `${WORDS[line.kind]} at ${momentText(line.at, zone, false)}, event ${line.seq}`).join("; ");
        return (
          <button key={first.seq} type="button" className={`tl-sign line-${first.kind}`} style={{ left: x }} title={text} aria-label={`${text}. Go there.`} onClick={() => travel(first.seq)}>
            <span aria-hidden="true">{lines.length > 1 ? lines.length : SIGNS[first.kind]}</span>
          </button>
        );
      })}
    </div>
  );
}
