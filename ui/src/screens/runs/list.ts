/** The rows of a list of runs, page by page. Pure: what is on the screen keeps its place, whatever arrives. */
import type { Runs, ListedRun } from "../../api/schema";
import { isOver, type RunStatus } from "../../shell/words";

export const ROWS_MAX = 2000;

export type RunList = {
  /** Each page with the cursor that it was asked with, and its rows in order. */
  pages: { cursor: string | null; ids: string[] }[];
  rows: ReadonlyMap<string, ListedRun>;
  /** The cursor of the next page; null after the last. */
  next: string | null;
  /** New runs that have not joined the list, newest first. */
  news: ListedRun[];
  /** The cursor behind the news if none of the rows followed them; undefined if the list goes on after them. */
  newsNext: string | null | undefined;
};

/** What a live frame says of a run. */
export type RunNews = { run: string; status: RunStatus; seq: number; at: string };

export const NO_LIST: RunList = { pages: [], rows: new Map(), next: null, news: [], newsNext: undefined };

export function firstPage(page: Runs): RunList {
  return { pages: [{ cursor: null, ids: page.runs.map((run) => run.id) }], rows: new Map(page.runs.map((run) => [run.id, run])), next: page.cursor, news: [], newsNext: undefined };
}

export function idsOf(list: RunList): string[] {
  return list.pages.flatMap(({ ids }) => ids);
}

export function isFull(list: RunList): boolean {
  return list.rows.size >= ROWS_MAX;
}

/** Return the list with the next page. Rows that moved between pages stay where they are shown. */
export function withNextPage(list: RunList, cursor: string, page: Runs): RunList {
  if (list.next !== cursor) return list;
  const added = page.runs.filter((run) => !list.rows.has(run.id)).slice(0, ROWS_MAX - list.rows.size);
  const rows = new Map(list.rows);
  for (const run of page.runs) if (rows.has(run.id) || added.includes(run)) rows.set(run.id, run);
  return { ...list, rows, pages: [...list.pages, { cursor, ids: added.map((run) => run.id) }], next: page.cursor };
}

/** Return the list with the first page asked again: known rows change in place, new ones are news. */
export function withHead(list: RunList, page: Runs): RunList {
  const changed = withRows(list, page.runs);
  const known = page.runs.findIndex((run) => list.rows.has(run.id));
  // Without any known run, there are more new ones than a page holds.
  const fresh = (known < 0 ? page.runs : page.runs.slice(0, known)).filter((run) => !list.rows.has(run.id));
  return fresh.length === 0 && list.news.length === 0 ? changed : { ...changed, news: fresh, newsNext: known < 0 ? page.cursor : undefined };
}

/** Return the list with these rows as they are now. Rows that it does not hold are left out. */
export function withRows(list: RunList, found: readonly ListedRun[]): RunList {
  const changed = found.filter((run) => {
    const known = list.rows.get(run.id);
    return known !== undefined && JSON.stringify(known) !== JSON.stringify(run) && run.seq >= known.seq;
  });
  if (changed.length === 0) return list;
  const rows = new Map(list.rows);
  for (const run of changed) rows.set(run.id, run);
  return { ...list, rows };
}

/** Return the list after live frames. */
export function withNews(list: RunList, news: readonly RunNews[]): RunList {
  const changed = news.flatMap((one) => {
    const row = list.rows.get(one.run);
    if (row === undefined || one.seq < row.seq) return [];
    return [{ ...row, status: one.status, seq: one.seq, updated_at: one.at, ended_at: isOver(one.status) ? row.ended_at ?? one.at : null }];
  });
  return withRows(list, changed);
}

/** Let the new runs join at the top. If others lie between them and the rows, the list begins again. */
export function withNewsJoined(list: RunList): RunList {
  if (list.news.length === 0) return list;
  if (list.newsNext !== undefined) return firstPage({ runs: list.news, cursor: list.newsNext });
  const rows = new Map(list.rows);
  for (const run of list.news) rows.set(run.id, run);
  const [first, ...others] = list.pages;
  const ids = [...list.news.map((run) => run.id), ...(first?.ids ?? [])];
  return { ...list, rows, pages: [{ cursor: null, ids }, ...others], news: [] };
}
