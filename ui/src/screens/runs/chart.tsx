/** Starts by hour, the failed part marked. A drag, or Shift with the arrow keys, selects a span. */
import { useRef, useState, type KeyboardEvent, type ReactElement } from "react";

import { momentText } from "../../parts/times";
import { useSettings } from "../../shell/settings";
import { counted } from "../../shell/words";
import { HOUR_MS, lengthText, selected, type Hour } from "./hours";

type Props = { hours: Hour[]; isChosen: boolean; onSelect: (from: number, to: number) => void; onClear: () => void };

export function StartsChart({ hours, isChosen, onSelect, onClear }: Props): ReactElement {
  const { zone } = useSettings();
  const [at, setAt] = useState(hours.length - 1);
  const [begun, setBegun] = useState<number | null>(null);
  const bars = useRef<HTMLDivElement>(null);
  const most = Math.max(1, ...hours.map(({ count }) => count));
  const here = Math.min(at, hours.length - 1);
  const [first, last] = begun === null ? [-1, -1] : selected(begun, here);
  const all = hours.reduce((sum, hour) => sum + hour.count, 0);
  const finish = (): void => {
    if (begun === null || !hours[first] || !hours[last]) return;
    setBegun(null);
    onSelect(hours[first].at, hours[last].at + HOUR_MS);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step !== 0) {
      const next = Math.min(Math.max(here + step, 0), hours.length - 1);
      setBegun(event.shiftKey ? begun ?? here : null);
      setAt(next);
      (bars.current?.children[next] as HTMLElement | undefined)?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      const [from, to] = begun === null ? [here, here] : [first, last];
      setBegun(null);
      onSelect(hours[from]!.at, hours[to]!.at + HOUR_MS);
    } else if (event.key === "Escape" && begun !== null) setBegun(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="starts" role="group" aria-label={`Starts by hour: ${counted(all, "run")}. Arrow keys move, with Shift they select, Enter filters.`}>
      <div ref={bars} className="bars" onPointerUp={finish} onPointerLeave={() => setBegun(null)} onKeyDown={onKey}>
        {hours.map((hour, index) => {
          const label = `${momentText(hour.at, zone).slice(0, 16)}, ${counted(hour.count, "start")}${hour.more ? " or more" : ""}${hour.failed > 0 ? `, ${hour.failed.toLocaleString("en")} failed` : ""}`;
          return (
            <button
              key={hour.at} type="button" tabIndex={index === here ? 0 : -1} aria-label={label} title={label} className={index >= first && index <= last ? "bar chosen" : "bar"}
              onPointerDown={(event) => { event.currentTarget.releasePointerCapture(event.pointerId); setBegun(index); setAt(index); }}
              onPointerEnter={() => { if (begun !== null) setAt(index); }}
            >
              <span className="bar-all" style={{ height: `${(hour.count / most) * 100}%` }}>
                <span className="bar-failed" style={{ height: hour.count > 0 ? `${(hour.failed / hour.count) * 100}%` : 0 }} />
              </span>
            </button>
          );
        })}
      </div>
      <span className="muted starts-label">{isChosen ? <button type="button" className="plain" onClick={onClear}>all times</button> : `starts, last ${lengthText(hours.length)}`}</span>
    </div>
  );
}
