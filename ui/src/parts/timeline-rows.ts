/** The rows that the timeline shows: boxes, and below an open box its places. */
import { useMemo, useState } from "react";

import type { TimelineRow, TimelineView } from "../api/schema";
import { selOf, type RunChosen } from "../screens/run/chosen";
import { usePicture, useStanding } from "../screens/run/data";
import { isNamed } from "../screens/run/filter-query";
import { useSelection, type Selection } from "../screens/run/selection";
import { useOpened } from "./timeline-data";
import type { ShownRow } from "./timeline-row";

export type ShownRows = {
  rows: ShownRow[];
  /** Open or close a box. */
  open: (shown: ShownRow) => void;
  /** Open boxes with places that were not asked for yet. */
  more: { box: string; more: () => void }[];
};

export function useShownRows(run: RunChosen, data: TimelineView | undefined): ShownRows {
  const [pages, setPages] = useState<ReadonlyMap<string, number>>(new Map());
  const opened = useOpened(run, pages);
  const picture = usePicture(run).data;
  const standing = useStanding(run).data;
  const selection = useSelection(run, picture) ?? null;
  const titles = useMemo(() => new Map(picture?.boxes.map((box) => [box.id, box.title])), [picture]);
  const rows = (data?.rows ?? []).filter((row) => isNamed(run.q, row.box)).flatMap((row) => {
    const isOpen = row.places > 1 ? opened.has(row.box) : null;
    const box: ShownRow = {
      key: row.box, level: 1, row, title: titles.get(row.box) || row.box, standing: standing?.boxes[row.box], isOpen,
      isSelected: selection?.box === row.box && (selection.place === null || isOpen !== true), sel: row.box,
    };
    return [box, ...(opened.get(row.box)?.rows ?? []).map((place) => placeRow(place, selection))];
  });
  const set = (box: string, count: number | null): void => setPages((known) => {
    const next = new Map(known);
    if (count === null) next.delete(box);
    else next.set(box, count);
    return next;
  });
  return {
    rows,
    open: ({ row }) => set(row.box, pages.has(row.box) ? null : 1),
    more: [...opened].filter(([, one]) => one.isMore).map(([box]) => ({ box, more: () => set(box, (pages.get(box) ?? 1) + 1) })),
  };
}

function placeRow(row: TimelineRow, selection: Selection | null): ShownRow {
  const place = row.place ?? "";
  return {
    key: `${row.box}\n${row.number}`, level: 2, row, title: place || row.box, standing: undefined, isOpen: null,
    isSelected: selection?.place?.number === row.number, sel: selOf({ place, box: row.box }),
  };
}
