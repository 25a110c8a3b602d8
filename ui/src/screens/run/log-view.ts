/**
 * A long list on the screen: the window of it that is loaded, and where it is scrolled to.
 *
 * It begins at the end or around an event, loads more in both directions, keeps its place when lines come in above, and
 * follows the end only while the end is in sight.
 */
import { opened, PAGE, withNewer, withOlder, type Ask, type LogWindow, type Page, type Source } from "./log-window";

export const ROW_PX = 24;
const NEAR_PX = 40 * ROW_PX;
const FAR = 1000;

export type Shown<T> = { window: LogWindow<T> | null; error: unknown; top: number; height: number };

export class LogView<T> {
  private shown: Shown<T> = { window: null, error: null, top: 0, height: 400 };
  private readonly listeners = new Set<() => void>();
  private element: HTMLElement | null = null;
  private asking: AbortController | null = null;
  private above = 0;
  private isAtEnd = true;
  /** Another window is asked for; where the one before is scrolled to no longer counts. */
  private isJumping = false;
  private newest = 0;
  private anchor: number | null = null;
  /** An event that is to be brought into sight once it is loaded. */
  private wanted: number | null = null;

  constructor(private readonly source: Source<T>) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): Shown<T> => this.shown;

  private change(changes: Partial<Shown<T>>): void {
    this.shown = { ...this.shown, ...changes };
    for (const listener of this.listeners) listener();
  }

  /** Take the element that scrolls. */
  readonly attach = (element: HTMLElement | null): (() => void) | undefined => {
    this.element = element;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => {
      if (this.isAtEnd) element.scrollTop = element.scrollHeight;
      this.measure();
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      this.element = null;
    };
  };

  start(anchor: number | null): void {
    this.anchor = anchor;
    this.jump(anchor ?? "end");
  }

  stop(): void {
    this.asking?.abort();
    this.asking = null;
  }

  /** Begin another window: around an event, or at the end. */
  jump(to: number | "end"): void {
    this.isAtEnd = to === "end";
    this.isJumping = true;
    this.wanted = to === "end" ? null : to;
    const after = to === "end" ? 0 : Math.max(0, to - PAGE / 2);
    this.load(to === "end" ? "end" : { after }, (page) => opened(to === "end" ? page : { ...page, before: after > 0 ? after + 1 : null }));
  }

  /** Load more on one side, unless that is the end of the log or something is being loaded. */
  more(side: "before" | "after"): void {
    const { window } = this.shown;
    if (window === null || window[side] === null || this.asking !== null) return;
    const edge = side === "before" ? window.items[0] : window.items.at(-1);
    const number = Number.isNaN(window[side]) && edge !== undefined ? this.source.numberOf(edge) : window[side];
    if (side === "before") this.load({ before: number }, (page) => withOlder(window, page, this.source.keyOf));
    else this.load({ after: number }, (page) => withNewer(window, page, this.source.keyOf));
  }

  /** There are new events. Whoever looks at the end sees them; for others the window goes on. */
  setNewest(newest: number): void {
    const { window } = this.shown;
    if (window === null) return;
    // A window that does not reach the end, or is on its way there, is told again when it has grown.
    if (window.after !== null) {
      if (this.isAtEnd) this.more("after");
      return;
    }
    if (newest === this.newest) return;
    const isFirst = this.newest === 0;
    this.newest = newest;
    const last = window.items.at(-1);
    const from = last === undefined ? 0 : this.source.numberOf(last);
    if (isFirst && from >= newest) return;
    if (this.isAtEnd && (newest - from > FAR || this.source.isChanging)) this.jump("end");
    else {
      this.change({ window: { ...window, after: this.source.isChanging ? Number.NaN : from } });
      if (this.isAtEnd) this.more("after");
    }
  }

  /** Another event was chosen; null is the end. */
  setAnchor(anchor: number | null): void {
    if (anchor === this.anchor) return;
    this.anchor = anchor;
    const { window } = this.shown;
    if (anchor === null) {
      if (window?.after === null) this.toEnd();
      else this.jump("end");
    } else {
      this.isAtEnd = false;
      this.wanted = anchor;
      if (!this.bringIntoSight()) this.jump(anchor);
    }
  }

  /** Go to the end, unless another event is chosen. */
  toNow(): void {
    if (this.anchor === null) this.jump("end");
  }

  private toEnd(): void {
    this.isAtEnd = true;
    if (this.element) this.element.scrollTop = this.element.scrollHeight;
  }

  private load(where: Parameters<Ask<T>>[0], put: (page: Page<T>) => LogWindow<T>): void {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.source.ask(where, asking.signal).then(
      (page) => {
        if (asking.signal.aborted) return;
        this.asking = null;
        this.change({ window: put(page), error: null });
      },
      (error: unknown) => {
        if (asking.signal.aborted) return;
        this.asking = null;
        this.isJumping = false;
        this.change({ error });
      },
    );
  }

  /** Put the scroll position right after lines have come or gone. */
  settle(): void {
    const { window } = this.shown;
    const { element } = this;
    if (element === null || window === null) return;
    const by = window.above - this.above;
    this.above = window.above;
    if (this.asking === null) this.isJumping = false;
    if (this.isAtEnd) element.scrollTop = element.scrollHeight;
    else if (!this.bringIntoSight() && by !== 0) element.scrollTop += by * ROW_PX;
    this.measure();
  }

  /** Scroll to the wanted event if it is loaded. Returns whether there is nothing more to do for it. */
  private bringIntoSight(): boolean {
    const { window } = this.shown;
    const { element, wanted } = this;
    if (wanted === null) return false;
    if (element === null || window === null || window.items.length === 0) return false;
    const found = window.items.findIndex((item) => this.source.numberOf(item) >= wanted);
    if (found === 0 && this.source.numberOf(window.items[0]!) > wanted && window.before !== null && this.asking === null) return false;
    if (found < 0 && window.after !== null) return false;
    this.wanted = null;
    const top = (found < 0 ? window.items.length - 1 : found) * ROW_PX;
    const isInSight = top >= element.scrollTop && top + ROW_PX <= element.scrollTop + element.clientHeight;
    if (!isInSight) element.scrollTop = top - element.clientHeight / 2 + ROW_PX / 2;
    return true;
  }

  /** Make a row visible. */
  reveal(index: number): void {
    const { element } = this;
    if (element === null) return;
    const top = index * ROW_PX;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW_PX > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW_PX - element.clientHeight;
  }

  /** Note where the list is scrolled to. Returns the pixels below what is in sight. */
  private measure(): number {
    const { element } = this;
    if (element === null) return 0;
    const { scrollTop: top, clientHeight: height } = element;
    if (top !== this.shown.top || height !== this.shown.height) this.change({ top, height });
    return element.scrollHeight - top - height;
  }

  readonly onScroll = (): void => {
    const below = this.measure();
    if (this.isJumping) return;
    // Whoever was at the end stays there while the next lines are on their way.
    this.isAtEnd = below < ROW_PX && (this.isAtEnd || this.shown.window?.after === null);
    if (this.shown.top < NEAR_PX) this.more("before");
    if (below < NEAR_PX) this.more("after");
  };
}
