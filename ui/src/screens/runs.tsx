/** Runs: filter, list, what to do with many of them. */
import "./runs.css";

import { useCallback, useEffect, useRef, useState, useSyncExternalStore, type ReactElement } from "react";

import { ProblemNote } from "../parts/problem";
import { useActions } from "../shell/actions";
import { choose, navigate, runPath, useChosen } from "../shell/address";
import { may, useMe } from "../shell/session";
import { useKeys } from "../shell/keys";
import { part } from "../shell/part";
import { useTitle } from "../shell/questions";
import { counted } from "../shell/words";
import { BulkBar } from "./runs/bulk";
import { StartsChart } from "./runs/chart";
import { ColumnsMenu } from "./runs/columns-menu";
import { attributeNames, useColumns } from "./runs/columns";
import { useCounts, useHours } from "./runs/counts";
import { NoRuns } from "./runs/empty";
import { RunsFeed, type FeedState } from "./runs/feed";
import { addressOf, NO_FILTER, type FilterFinding, type RunFilter } from "./runs/filter";
import { idsOf } from "./runs/list";
import { useWorkflowNames } from "./runs/names";
import { RunsTable } from "./runs/table";
import { FilterFields, FilterLine, StatusChips } from "./runs/toolbar";
import { useFilter } from "./runs/use-filter";
import { ViewsMenu } from "./runs/views-menu";

const StartDialog = part(() => import("../parts/start-dialog"));

export default function Runs(): ReactElement {
  const me = useMe();
  const { filter, findings, query } = useFilter();
  const { feed, state } = useFeed(filter, me === undefined || me.host === "" || me.hosts > 1);
  const names = useWorkflowNames();
  const counts = useCounts(filter, state.changes);
  const hours = useHours(filter, state.filter !== null);
  const [columns, setColumns] = useColumns(filter.workflow);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [starting, setStarting] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const current = useChosen().get("sel") ?? "";
  const setFilter = useCallback((changed: RunFilter): void => choose({ ...addressOf(changed), sel: null }), []);
  const onMark = useCallback((id: string) => setMarked((before) => turned(before, id)), []);
  const onCurrent = useCallback((id: string) => choose({ sel: id }, { replace: true }), []);
  useTitle(filter.workflow ? `Runs of ${filter.workflow}` : "Runs");
  useRunsKeys({ state, current, field, marked, onMark, setMarked, onStart: () => setStarting(filter.workflow) });
  const isEmpty = state.filter !== null && state.list.rows.size === 0 && state.list.next === null;
  const matching = counts && sumOf(counts, filter);
  return (
    <div className="runs-screen">
      <div className="runs-head">
        <h1 className="unseen">Runs</h1>
        <div className="row runs-bar">
          <ViewsMenu query={query} mayShare={may(me, "operate")} />
          <StatusChips filter={filter} onChange={setFilter} counts={counts} />
          <FilterFields filter={filter} onChange={setFilter} names={names} />
        </div>
        <div className="row runs-bar">
          <FilterLine key={query} filter={filter} onChange={setFilter} field={field} />
          <span className="grow" />
          {hours && <StartsChart {...hours} onSelect={(from, to) => setFilter({ ...filter, since: new Date(from).toISOString(), until: new Date(to).toISOString() })} onClear={() => setFilter({ ...filter, since: "", until: "" })} />}
          <ColumnsMenu columns={columns} names={attributeNames(state.list.rows.values())} onChange={setColumns} />
          {may(me, "start") && <button type="button" className="primary" onClick={() => setStarting(filter.workflow)}>Start a run <kbd>n</kbd></button>}
        </div>
        <BadChoices findings={findings} />
        {state.error !== null && <ProblemNote error={state.error} retry={feed.again} />}
      </div>
      <div className="runs-list">
        {state.list.news.length > 0 && <NewPill count={state.list.news.length} isMore={state.list.newsNext !== undefined} onShow={feed.showNews} />}
        {isEmpty
          ? <NoRuns filter={state.filter ?? NO_FILTER} me={me} names={names} onClear={() => navigate("/runs")} onStart={setStarting} />
          : <RunsTable
              feed={feed} state={state} tags={names.tags} columns={columns} marked={marked} current={current}
              onMark={onMark} onMarkAll={(ids) => setMarked(new Set(ids))} onCurrent={onCurrent}
            />}
      </div>
      <BulkBar marked={marked} filter={filter} matching={matching} onClear={() => setMarked(new Set())} mayOperate={may(me, "operate")} />
      {starting !== null && <StartDialog workflow={starting} onClose={() => setStarting(null)} />}
    </div>
  );
}

function useFeed(filter: RunFilter, isShared: boolean): { feed: RunsFeed; state: FeedState } {
  const [feed] = useState(() => new RunsFeed());
  useEffect(() => feed.start(filter), [feed, filter]);
  useEffect(() => feed.setShared(isShared), [feed, isShared]);
  useEffect(() => () => feed.stop(), [feed]);
  return { feed, state: useSyncExternalStore(feed.subscribe, feed.snapshot) };
}

function turned(marked: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(marked);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

/** Return how many runs match, states included. */
function sumOf(counts: ReadonlyMap<string, { count: number; more: boolean }>, filter: RunFilter): { count: number; more: boolean } {
  const wanted = [...counts].filter(([status]) => filter.status.length === 0 || (filter.status as string[]).includes(status));
  return { count: wanted.reduce((sum, [, one]) => sum + one.count, 0), more: wanted.some(([, one]) => one.more) };
}

function BadChoices({ findings }: { findings: FilterFinding[] }): ReactElement | null {
  if (findings.length === 0) return null;
  return <p className="bad-choices" role="status">Ignored in the address: {findings.map(({ what, why }) => `${what} (${why})`).join("; ")}.</p>;
}

function NewPill({ count, isMore, onShow }: { count: number; isMore: boolean; onShow: () => void }): ReactElement {
  return (
    <button type="button" className="new-pill primary" onClick={() => {
      onShow();
      document.querySelector(".runs-scroll")?.scrollTo({ top: 0 });
    }}>{counted(count, "new", "new")}{isMore ? " or more" : ""}</button>
  );
}

type Acts = {
  state: FeedState; current: string; field: React.RefObject<HTMLInputElement | null>; marked: ReadonlySet<string>;
  onMark: (id: string) => void; setMarked: (ids: ReadonlySet<string>) => void; onStart: () => void;
};

function useRunsKeys({ state, current, field, marked, onMark, setMarked, onStart }: Acts): void {
  const move = (step: number): void => {
    const ids = idsOf(state.list);
    const at = ids.indexOf(current);
    const next = ids[at < 0 ? 0 : Math.min(Math.max(at + step, 0), ids.length - 1)];
    if (next === undefined) return;
    choose({ sel: next }, { replace: true });
    focusRow(next);
  };
  useActions([
    { title: "Start a run", about: "n", run: onStart },
    ...(marked.size > 0 || current ? [{ title: marked.size > 0 ? `Steer ${counted(marked.size, "marked run")}` : `Steer ${current}`, about: "cancel, pause, resume, retry", run: () => act() }] : []),
    ...(current ? [{ title: `Open ${current}`, about: "Enter", run: () => navigate(runPath(current)) }] : []),
  ]);
  const act = (): void => {
    if (marked.size === 0 && current) onMark(current);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(".bulk-bar button[data-verb]")?.focus());
  };
  useKeys("Runs", [
    { keys: "j", does: "Next run", run: () => move(1) },
    { keys: "k", does: "Previous run", run: () => move(-1) },
    { keys: "ArrowDown", does: "Next run", run: () => move(1), isHidden: true },
    { keys: "ArrowUp", does: "Previous run", run: () => move(-1), isHidden: true },
    { keys: "Enter", does: "Open the run", isNative: true, run: () => undefined },
    { keys: "x", does: "Mark the run", run: () => { if (current) onMark(current); } },
    { keys: ".", does: "Actions on the marked runs, or on this one", run: act },
    { keys: "/", does: "Filter as text", run: () => field.current?.select() },
    { keys: "n", does: "Start a run", run: onStart },
    { keys: "Escape", does: "Clear the marks, then the selection", run: () => (marked.size > 0 ? setMarked(new Set()) : choose({ sel: null }, { replace: true })) },
  ]);
}

const FRAMES = 10;

/** Focus the link of a row. A row that was out of sight is drawn some frames later. */
function focusRow(id: string, frames = FRAMES): void {
  const link = document.querySelector<HTMLElement>(`a[data-run="${CSS.escape(id)}"]`);
  if (link) link.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusRow(id, frames - 1));
}
