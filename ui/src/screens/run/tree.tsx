/** The runs around a run: the root, its children and theirs, fifty at a time. Many of one kind fold. */
import { keepPreviousData, useInfiniteQuery, type InfiniteData, type UseInfiniteQueryResult } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import type { Family, FamilyGroup, FamilyMember, RunDetail } from "../../api/schema";
import { Sign } from "../../parts/state";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { MARK_SIGNS, STATUS_MARKS, statusWord, type RunStatus } from "../../shell/words";

const PAGE = 50;
const LIVE_MS = 2000;
const DEPTH_MAX = 12;
const FOLD_FROM = 6;

/** Whether a run has relatives: a parent, or children, which are asked for once that is wanted. */
export function useHasRelatives(run: RunDetail, isWanted: boolean): boolean {
  const family = useFamily(run.id, run.id, {}, isWanted);
  return run.parent !== null || (family.data?.pages[0]?.children.length ?? 0) > 0;
}

type Filter = { workflow?: string; status?: RunStatus };

/** A run with a page of those that it started, and how many there are of each workflow. */
function useFamily(id: string, here: string, filter: Filter, enabled = true): UseInfiniteQueryResult<InfiniteData<Family>> {
  return useInfiniteQuery({
    queryKey: ["run", here, "family", null, id, filter],
    queryFn: ({ signal, pageParam }) => {
      const query = { ...filter, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) };
      return read(api.GET("/api/v1/runs/{id}/family", { params: { path: { id }, query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.cursor,
    placeholderData: keepPreviousData,
    staleTime: LIVE_MS,
    enabled,
  });
}

export function RunTree({ run }: { run: RunDetail }): ReactElement {
  const path = [...(run.ancestors ?? []), run.id];
  return (
    <nav className="tree" aria-label="Runs of this tree">
      <h2>runs</h2>
      <ul><Branch id={path[0]!} path={path} here={run} depth={0} /></ul>
    </nav>
  );
}

type BranchProps = { id: string; known?: FamilyMember | RunDetail; path: string[]; here: RunDetail; depth: number };

/** A run of the tree. Those on the way to the run that is shown are open. */
function Branch({ id, known, path, here, depth }: BranchProps): ReactElement {
  const [isOpen, setOpen] = useState(path.includes(id));
  const own = useFamily(id, here.id, {}, known === undefined && id !== here.id);
  const row = id === here.id ? here : (known ?? own.data?.pages[0]?.run);
  const hasChildren = known && "has_children" in known ? known.has_children !== false : true;
  return (
    <li>
      <div className="tree-row" aria-current={id === here.id ? "page" : undefined}>
        {hasChildren
          ? <button type="button" className="plain" aria-expanded={isOpen} aria-label={`Runs below ${id}`} onClick={() => setOpen(!isOpen)}>{isOpen ? "▾" : "▸"}</button>
          : <span className="tree-leaf" />}
        {row ? <><Sign mark={STATUS_MARKS[row.status]} /><span className="unseen">{statusWord(row.status)}</span></> : null}
        <Link to={runPath(id)} className="cut" title={`${id}${row ? ` · ${row.workflow}` : ""}`}>{shortened(id, path, depth)}</Link>
        {row && depth > 0 && <span className="muted cut">{row.workflow}</span>}
      </div>
      {isOpen && hasChildren && depth < DEPTH_MAX && <Children id={id} path={path} here={here} depth={depth} />}
    </li>
  );
}

/** A child's id often begins with its parent's: only the rest is shown. */
function shortened(id: string, path: string[], depth: number): string {
  const parent = path[depth - 1];
  return parent && id.startsWith(parent + ".") ? "…" + id.slice(parent.length + 1) : id;
}

/** The children of a run. Many of one workflow fold, except in the list that a fold itself opens. */
function Children({ id, path, here, depth, filter }: Omit<BranchProps, "known"> & { filter?: Filter }): ReactElement {
  const found = useFamily(id, here.id, filter ?? {});
  const pages = found.data?.pages ?? [];
  const groups = pages[0]?.groups ?? [];
  const folded = new Set(filter ? [] : groups.filter(({ total }) => total >= FOLD_FROM).map(({ workflow }) => workflow));
  const rows = pages.flatMap((page) => page.children).filter((row) => !folded.has(row.workflow) || path.includes(row.id));
  const next = filter === undefined && path[depth] === id ? path[depth + 1] : undefined;
  const isBeyond = next !== undefined && found.data !== undefined && !rows.some((row) => row.id === next);
  if (pages.length > 0 && pages[0]!.children.length === 0) return <ul><li className="muted tree-none">no runs below it</li></ul>;
  return (
    <ul>
      {isBeyond && <Branch id={next} path={path} here={here} depth={depth + 1} />}
      {rows.map((row) => <Branch key={row.id} id={row.id} known={row} path={path} here={here} depth={depth + 1} />)}
      {groups.filter(({ workflow }) => folded.has(workflow)).map((group) => <Folded key={group.workflow} group={group} parent={id} path={path} here={here} depth={depth} />)}
      {found.hasNextPage && (filter || folded.size < groups.length) && (
        <li><button type="button" className="plain" disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>{PAGE} more</button></li>
      )}
    </ul>
  );
}

type FoldedProps = { group: FamilyGroup; parent: string; path: string[]; here: RunDetail; depth: number };

/** Many runs of one workflow. Opened, the failed ones come first. */
function Folded({ group, parent, path, here, depth }: FoldedProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [isAll, setAll] = useState(false);
  const { workflow, total, by_status: counts } = group;
  const text = Object.entries(counts).map(([status, count]) => `${count.toLocaleString("en")} ${MARK_SIGNS[STATUS_MARKS[status as RunStatus] ?? "idle"]}`).join(" ");
  const hasFailed = (counts["failed"] ?? 0) > 0;
  return (
    <li>
      <button type="button" className="plain tree-row" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "▾" : "▸"} <span className="cut">{workflow}</span> <span className="muted num">×{total.toLocaleString("en")}: {text}</span>
      </button>
      {isOpen && <Children id={parent} path={path} here={here} depth={depth} filter={{ workflow, ...(hasFailed && !isAll ? { status: "failed" as const } : {}) }} />}
      {isOpen && hasFailed && <button type="button" className="plain" aria-pressed={isAll} onClick={() => setAll(!isAll)}>{isAll ? "failed ones only" : "all of them"}</button>}
    </li>
  );
}
