/** A window of a long list: what is loaded of it, and how it goes on in both directions. Pure. */

export type Page<T> = { items: T[]; before: number | null; after: number | null };
export type LogWindow<T> = Page<T> & { above: number };

export const PAGE = 200;
export const KEPT_MAX = 2000;

/** Asks for a page before a number, after a number, or at the end. */
export type Ask<T> = (where: { before: number } | { after: number } | "end", signal: AbortSignal) => Promise<Page<T>>;
export type Source<T> = {
  ask: Ask<T>;
  keyOf: (item: T) => string;
  numberOf: (item: T) => number;
  /** Whether lines that are loaded may change when the run goes on. */
  isChanging: boolean;
};

/** `above` counts the rows that came in above the ones that were there, less those that went: what scrolling must make up for. */
export function opened<T>(page: Page<T>): LogWindow<T> {
  return { ...page, above: 0 };
}

/** Put an older page above. Rows at the far end are dropped when too many are kept. */
export function withOlder<T>(window: LogWindow<T>, page: Page<T>, keyOf: (item: T) => string): LogWindow<T> {
  const known = new Set(window.items.map(keyOf));
  const added = page.items.filter((item) => !known.has(keyOf(item)));
  const items = [...added, ...window.items];
  const kept = items.slice(0, KEPT_MAX);
  const after = kept.length < items.length ? Number.NaN : window.after;
  return { items: kept, before: page.before, after, above: window.above + added.length };
}

/** Put a newer page below. A row that is there already is replaced by its newer form. */
export function withNewer<T>(window: LogWindow<T>, page: Page<T>, keyOf: (item: T) => string): LogWindow<T> {
  const newer = new Map(page.items.map((item) => [keyOf(item), item]));
  const items = window.items.map((item) => {
    const found = newer.get(keyOf(item));
    newer.delete(keyOf(item));
    return found ?? item;
  });
  items.push(...newer.values());
  const dropped = Math.max(0, items.length - KEPT_MAX);
  return { items: items.slice(dropped), before: dropped > 0 ? Number.NaN : window.before, after: page.after, above: window.above - dropped };
}

/** The rows that lie in sight, with some more on both sides. */
export function rowsInSight(top: number, height: number, rowPx: number, count: number, overscan = 8): { first: number; last: number } {
  const first = Math.max(0, Math.floor(top / rowPx) - overscan);
  const last = Math.min(count, Math.ceil((top + height) / rowPx) + overscan);
  return { first: Math.min(first, last), last };
}
