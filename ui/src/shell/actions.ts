/** What can be done with what is selected: screens offer it, the palette shows it. */
import { useLayoutEffect, useRef } from "react";

export type Action = { title: string; about?: string; run: () => void };

const offered: { actions: Action[] }[] = [];

/** Offer actions while the calling component is shown. */
export function useActions(actions: Action[]): void {
  const kept = useRef({ actions });
  useLayoutEffect(() => {
    kept.current.actions = actions;
  });
  useLayoutEffect(() => {
    const own = kept.current;
    offered.unshift(own);
    return () => {
      offered.splice(offered.indexOf(own), 1);
    };
  }, []);
}

export function allActions(): Action[] {
  return offered.flatMap(({ actions }) => actions);
}
