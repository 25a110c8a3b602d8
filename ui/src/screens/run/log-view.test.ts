import { describe, expect, it, vi } from "vitest";

import type { Source } from "./log-window";
import { LogView, ROW_PX } from "./log-view";

const LAST = 1000;

/** A log of numbers, whose pages come when they are let through. */
function numbers(): { source: Source<number>; answer: () => Promise<void> } {
  const waiting: (() => void)[] = [];
  const source: Source<number> = {
    isChanging: false,
    keyOf: String,
    numberOf: (item) => item,
    ask: (where) =>
      new Promise((resolve) => {
        const from = where === "end" ? LAST - 199 : "after" in where ? where.after + 1 : where.before - 200;
        const items = Array.from({ length: 200 }, (_, at) => from + at);
        waiting.push(() => resolve({ items, before: from > 1 ? from : null, after: from + 199 < LAST ? from + 199 : null }));
      }),
  };
  return {
    source,
    answer: async () => {
      waiting.splice(0).forEach((go) => go());
      await Promise.resolve();
    },
  };
}

/** As much of an element as the view uses: it scrolls within what is loaded. */
function scroller(view: LogView<number>): HTMLElement {
  const clientHeight = 10 * ROW_PX;
  let top = 0;
  return {
    clientHeight,
    get scrollHeight() {
      return (view.snapshot().window?.items.length ?? 0) * ROW_PX;
    },
    get scrollTop() {
      return top;
    },
    set scrollTop(to: number) {
      top = Math.max(0, Math.min(to, this.scrollHeight - clientHeight));
    },
  } as HTMLElement;
}

describe("a log on the screen", () => {
  it("goes to the end although the scrolling to the beginning is told late", async () => {
    vi.stubGlobal("ResizeObserver", class { observe(): void {} disconnect(): void {} });
    const { source, answer } = numbers();
    const view = new LogView(source);
    const element = scroller(view);
    view.attach(element);
    view.start(null);
    await answer();
    view.settle();
    view.jump(1);
    await answer();
    view.settle();

    view.jump("end");
    view.onScroll();
    await answer();
    view.settle();

    expect(view.snapshot().window?.items.at(-1)).toBe(LAST);
    expect(element.scrollTop).toBe(element.scrollHeight - element.clientHeight);
    vi.unstubAllGlobals();
  });
});
