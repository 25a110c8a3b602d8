/** What the Runs screen shows, as it arrives: pages, live frames, counts, and what the rows in sight wait for. */
import { api, Problem, read, Unreachable } from "../../api/client";
import { follow, type Frame } from "../../api/live";
import { queries } from "../../api/queries";
import type { ListedRun } from "../../api/schema";
import { serverNow } from "../../shell/clock";
import { reportConnection } from "../../shell/connection";
import { isOver } from "../../shell/words";
import { askRuns, PAGE } from "./asking";
import { isSameFilter, NO_FILTER, type RunFilter } from "./filter";
import { firstPage, isFull, NO_LIST, withHead, withNews, withNewsJoined, withNextPage, withRows, type RunList, type RunNews } from "./list";

export type FeedState = {
  list: RunList;
  /** The filter of these rows; null before the first answer. */
  filter: RunFilter | null;
  isAsking: boolean;
  isAskingMore: boolean;
  error: unknown;
  moreError: unknown;
  /** What runs wait for, in words, by id. */
  waits: ReadonlyMap<string, string>;
  /** How often something that matters to the counts has happened. */
  changes: number;
};

const AGAIN_MS = 30_000;
/** A host sends only what it commits itself: where others share the store, the list is asked again. */
const SHARED_AGAIN_MS = 5000;
const RETRY_MS = 4000;
const SOON_MS = 500;
const GATHER_MS = 300;
const WAITS_AGAIN_MS = 5000;
const SOURCE = "runs";

export class RunsFeed {
  private state: FeedState = { list: NO_LIST, filter: null, isAsking: true, isAskingMore: false, error: null, moreError: null, waits: new Map(), changes: 0 };
  private readonly listeners = new Set<() => void>();
  private filter: RunFilter = NO_FILTER;
  private asking: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private gatherTimer: ReturnType<typeof setTimeout> | undefined;
  private waitsTimer: ReturnType<typeof setTimeout> | undefined;
  private unfollow: (() => void) | null = null;
  private gathered = new Map<string, RunNews>();
  private hasNewRuns = false;
  private isWanted = false;
  private isShared = true;
  private isAtTop = true;
  private inSight: string[] = [];
  private readonly asked = new Map<string, { seq: number; at: number }>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): FeedState => this.state;

  /** Show the runs of a filter. What was shown stays until the answer is there. */
  start(filter: RunFilter): void {
    const isAnother = this.unfollow === null || this.filter.workflow !== filter.workflow;
    this.filter = filter;
    this.gathered.clear();
    this.change({ isAsking: true, error: null, moreError: null });
    this.again();
    if (isAnother) this.listen();
  }

  /** Say whether other hosts share the store, or this server hears of no commits at all. */
  setShared(isShared: boolean): void {
    if (isShared === this.isShared) return;
    this.isShared = isShared;
    if (isShared) this.soon();
  }

  stop(): void {
    this.asking?.abort();
    this.unfollow?.();
    this.unfollow = null;
    for (const timer of [this.timer, this.gatherTimer, this.waitsTimer]) clearTimeout(timer);
    this.gatherTimer = this.waitsTimer = undefined;
    reportConnection(SOURCE, null);
  }

  /** Ask for the first page and the pages in sight again, now. */
  readonly again = (): void => {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = new AbortController();
    this.isWanted = false;
    const { signal } = this.asking;
    void this.askHead(signal).finally(() => {
      if (signal.aborted) return;
      this.asking = null;
      this.timer = setTimeout(this.again, this.isWanted ? SOON_MS : this.state.error ? RETRY_MS : this.isShared ? SHARED_AGAIN_MS : AGAIN_MS);
    });
  };

  /** Ask again as soon as what is being asked now has been answered. */
  private soon(): void {
    this.isWanted = true;
    if (this.asking !== null) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.again, SOON_MS);
  }

  private async askHead(signal: AbortSignal): Promise<void> {
    const filter = this.filter;
    try {
      const page = await askRuns(filter, null, signal);
      reportConnection(SOURCE, null);
      const isSame = this.state.filter !== null && isSameFilter(this.state.filter, filter);
      const list = isSame ? withHead(this.state.list, page) : firstPage(page);
      if (!isSame) this.asked.clear();
      this.change({ list: this.joined(list), filter, isAsking: false, error: null, changes: this.state.changes + 1 });
      this.askWaitsSoon();
      await this.askPagesInSight(filter, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Unreachable) reportConnection(SOURCE, { state: "offline", retryAt: serverNow() + RETRY_MS });
      this.change({ error, isAsking: false });
    }
  }

  /** Pages further down are asked again while their rows are looked at. */
  private async askPagesInSight(filter: RunFilter, signal: AbortSignal): Promise<void> {
    const seen = new Set(this.inSight);
    for (const { cursor, ids } of this.state.list.pages) {
      if (cursor === null || !ids.some((id) => seen.has(id))) continue;
      const page = await askRuns(filter, cursor, signal);
      this.change({ list: withRows(this.state.list, page.runs) });
    }
  }

  readonly more = (): void => {
    const { list, filter, isAskingMore } = this.state;
    if (list.next === null || filter === null || isAskingMore || isFull(list)) return;
    const cursor = list.next;
    this.change({ isAskingMore: true, moreError: null });
    askRuns(filter, cursor).then(
      (page) => this.change({ list: this.state.filter === filter ? withNextPage(this.state.list, cursor, page) : this.state.list, isAskingMore: false }),
      (moreError: unknown) => this.change({ moreError, isAskingMore: false }),
    );
  };

  /** Say whether the top of the list is in sight: only then new runs may join. */
  setAtTop(isAtTop: boolean): void {
    if (isAtTop === this.isAtTop) return;
    this.isAtTop = isAtTop;
    if (isAtTop) this.showNews();
  }

  readonly showNews = (): void => this.change({ list: withNewsJoined(this.state.list) });

  private joined(list: RunList): RunList {
    return this.isAtTop ? withNewsJoined(list) : list;
  }

  /** Say which rows are in sight: only what these wait for is asked. */
  look(ids: string[]): void {
    this.inSight = ids;
    this.askWaitsSoon();
  }

  // --- live ----------------------------------------------------------------------------------------------------------

  private listen(): void {
    this.unfollow?.();
    const query: Record<string, string> = this.filter.workflow ? { workflow: this.filter.workflow } : {};
    this.unfollow = follow("/live", query, {
      onFrame: (frame) => this.heard(frame),
      onOpen: (isAgain) => {
        if (isAgain) this.again();
      },
    });
  }

  private heard(frame: Frame): void {
    if (frame.event === "gap") return this.again();
    // The frame around the screen shows the error of `weft dev`; it is asked for when it changes.
    if (frame.event === "dev") return void queries.invalidateQueries({ queryKey: ["me"] });
    const news = frame.data as Partial<RunNews> | null;
    if (typeof news?.run !== "string" || typeof news.seq !== "number") return;
    if (this.state.list.rows.has(news.run)) this.gathered.set(news.run, news as RunNews);
    else if (news.seq === 1) this.hasNewRuns = true;
    else return;
    this.gatherTimer ??= setTimeout(() => this.apply(), GATHER_MS);
  }

  private apply(): void {
    this.gatherTimer = undefined;
    const news = [...this.gathered.values()];
    this.gathered.clear();
    const list = withNews(this.state.list, news);
    const isCounted = news.some(({ run, status }) => this.state.list.rows.get(run)?.status !== status);
    this.change({ list, changes: this.state.changes + (isCounted ? 1 : 0) });
    if (this.hasNewRuns) {
      this.hasNewRuns = false;
      this.soon();
    } else this.askWaitsSoon();
  }

  // --- what runs wait for --------------------------------------------------------------------------------------------

  private askWaitsSoon(): void {
    this.waitsTimer ??= setTimeout(() => {
      this.waitsTimer = undefined;
      void this.askWaits();
    }, GATHER_MS);
  }

  private async askWaits(): Promise<void> {
    const now = serverNow();
    const wanted = this.inSight.map((id) => this.state.list.rows.get(id)).filter((row): row is ListedRun => row !== undefined && this.isUnknown(row, now));
    const rows = wanted.slice(0, PAGE);
    if (rows.length === 0) return;
    for (const { id, seq } of rows) this.asked.set(id, { seq, at: now });
    try {
      const { waits } = await read(api.GET("/api/v1/waits", { params: { query: { id: rows.map(({ id }) => id) } } }));
      const found = new Map(this.state.waits);
      for (const { id } of rows) found.delete(id);
      for (const { run, waits_for: text } of waits) found.set(run, text ?? "");
      this.change({ waits: found });
    } catch (error) {
      // The rows are worth more than what they wait for; it is asked for again with the next page.
      if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
      for (const { id } of rows) this.asked.delete(id);
    }
    if (wanted.length > rows.length) this.askWaitsSoon();
  }

  private isUnknown(row: ListedRun, now: number): boolean {
    if (isOver(row.status)) return false;
    const known = this.asked.get(row.id);
    return known === undefined || known.seq !== row.seq || now - known.at > WAITS_AGAIN_MS;
  }

  private change(changes: Partial<FeedState>): void {
    this.state = { ...this.state, ...changes };
    for (const listener of this.listeners) listener();
  }
}
