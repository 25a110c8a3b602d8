/** A log on the screen: lines of a fixed height, of which only those in sight are in the document. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useState, useSyncExternalStore, type KeyboardEvent, type ReactElement, type ReactNode } from "react";

import { ProblemNote } from "../../parts/problem";
import { LogView, ROW_PX } from "./log-view";
import { rowsInSight, type Source } from "./log-window";

export type Line = {
  number: number;
  isAt: boolean;
  isLater: boolean;
  isSelected: boolean;
  onChoose: () => void;
  onGo: () => void;
  shown: ReactNode;
};

type Props<T> = {
  source: Source<T>;
  anchor: number | null;
  newest: number;
  /** Changes with every command that was sent: the list then goes to its end. */
  sent: number;
  filter: string;
  lineOf: (item: T) => Line;
  detailOf?: ((item: T) => ReactNode) | undefined;
};

export function LogList<T>({ source, anchor, newest, sent, filter, lineOf, detailOf }: Props<T>): ReactElement {
  const view = useMemo(() => new LogView(source), [source]);
  const { window, error, top, height } = useSyncExternalStore(view.subscribe, view.snapshot);
  const [active, setActive] = useState<string | null>(null);
  const attach = useCallback((element: HTMLElement | null) => view.attach(element), [view]);
  useFollowing(view, window, anchor, newest);
  useEffect(() => {
    if (sent > 0) view.toNow();
  }, [view, sent]);

  const items = window?.items ?? [];
  const found = active === null ? -1 : items.findIndex((item) => source.keyOf(item) === active);
  const activeAt = found >= 0 ? found : items.length - 1;
  const go = (index: number): void => {
    const at = Math.min(items.length - 1, Math.max(0, index));
    const item = items[at];
    if (item === undefined) return;
    setActive(source.keyOf(item));
    view.reveal(at);
  };
  const { first, last } = rowsInSight(top, height, ROW_PX, items.length);
  const activeItem = items[activeAt];
  return (
    <div className="log">
      {error !== null && <ProblemNote error={error} retry={() => view.start(anchor)} />}
      {window !== null && items.length === 0 && window.before === null && (
        <p className="muted log-none">{filter ? `Nothing in this log matches “${filter}”.` : "Nothing has happened yet."}</p>
      )}
      <div className="log-scroll" ref={attach} onScroll={view.onScroll}>
        <div
          role="grid" aria-label="Log" aria-rowcount={newest || -1} aria-readonly="true" tabIndex={0} className="log-lines" style={{ height: items.length * ROW_PX }}
          aria-activedescendant={activeAt >= first && activeAt < last ? `log-${activeAt}` : undefined}
          onKeyDown={(event) => onLogKey(event, view, { activeAt, page: Math.floor(height / ROW_PX), go, line: activeItem === undefined ? null : lineOf(activeItem) })}
        >
          {items.slice(first, last).map((item, offset) => (
            <LogLine key={source.keyOf(item)} line={lineOf(item)} index={first + offset} isActive={first + offset === found} onActivate={() => setActive(source.keyOf(item))} />
          ))}
        </div>
      </div>
      {detailOf && found >= 0 && <div className="log-detail">{detailOf(items[found]!)}</div>}
    </div>
  );
}

/** Keep the view at what is chosen and at the newest event. */
function useFollowing<T>(view: LogView<T>, window: unknown, anchor: number | null, newest: number): void {
  useEffect(() => {
    view.start(anchor);
    return () => view.stop();
    // Later anchors are set below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [view]);
  useEffect(() => view.setAnchor(anchor), [view, anchor]);
  useEffect(() => view.setNewest(newest), [view, newest, window]);
  useLayoutEffect(() => view.settle(), [view, window]);
}

type LineProps = { line: Line; index: number; isActive: boolean; onActivate: () => void };

function LogLine({ line, index, isActive, onActivate }: LineProps): ReactElement {
  return (
    <div
      id={`log-${index}`} role="row" aria-rowindex={line.number} aria-selected={line.isSelected} aria-current={line.isAt || undefined}
      className="log-line" data-later={line.isLater} data-active={isActive} style={{ transform: `translateY(${index * ROW_PX}px)` }}
      onClick={() => {
        onActivate();
        line.onChoose();
      }}
      onDoubleClick={line.onGo}
    >
      <span role="gridcell" className="log-number num">{line.number}</span>
      <span role="gridcell" className="log-shown">{line.shown}</span>
    </div>
  );
}

type KeyState = { activeAt: number; page: number; go: (index: number) => void; line: Line | null };

function onLogKey<T>(event: KeyboardEvent, view: LogView<T>, { activeAt, page, go, line }: KeyState): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
  const acts: Record<string, (() => void) | undefined> = {
    ArrowDown: () => go(activeAt + 1),
    ArrowUp: () => go(activeAt - 1),
    j: () => go(activeAt + 1),
    k: () => go(activeAt - 1),
    PageDown: () => go(activeAt + page),
    PageUp: () => go(activeAt - page),
    Home: () => view.jump(1),
    End: () => view.jump("end"),
    Enter: () => {
      line?.onChoose();
      line?.onGo();
    },
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
