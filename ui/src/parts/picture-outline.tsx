/** A picture as a tree: groups with their boxes, in the order in which they were drawn. For screen readers, and for those who prefer it. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, type ReactElement } from "react";

import type { DrawnBox, DrawnPicture } from "../api/schema";
import { onPictureKey, type PictureProps } from "./picture";
import { isDot, listed, markOf, tallyOf, tallyText, targetsOf, titleOf, totalOf } from "./picture-look";
import { Sign } from "./state";

const ROW = 28;

type Row = { kind: "group"; id: string; title: string; depth: number } | { kind: "box"; box: DrawnBox; depth: number };

export function Outline(props: PictureProps): ReactElement {
  const { picture, selected } = props;
  const rows = useMemo(() => rowsOf(picture), [picture]);
  const targets = useMemo(() => targetsOf(picture), [picture]);
  const list = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => list.current, estimateSize: () => ROW, overscan: 10 });
  const chosen = rows.findIndex((row) => row.kind === "box" && row.box.id === selected);
  useEffect(() => {
    if (chosen >= 0) virtual.scrollToIndex(chosen, { align: "auto" });
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [chosen]);
  const step = (by: number): void => {
    for (let at = Math.max(0, chosen) + (chosen < 0 ? 0 : by); at >= 0 && at < rows.length; at += by) {
      const row = rows[at]!;
      if (row.kind === "box") return props.onSelect(row.box.id);
    }
  };
  return (
    <div
      ref={list} className="outline" role="tree" tabIndex={0} aria-label={`Outline of ${picture.title}`}
      aria-activedescendant={chosen >= 0 ? `outline-${chosen}` : undefined}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          event.preventDefault();
          event.stopPropagation();
          step(event.key === "ArrowDown" ? 1 : -1);
        } else onPictureKey(event, props);
      }}
    >
      <div role="none" style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map(({ index, start }) => (
          <OutlineRow key={index} row={rows[index]!} index={index} count={rows.length} top={start} targets={targets} {...props} />
        ))}
      </div>
    </div>
  );
}

type RowProps = PictureProps & { row: Row; index: number; count: number; top: number; targets: Map<string, string[]> };

function OutlineRow({ row, index, count, top, targets, ...props }: RowProps): ReactElement {
  const place = { position: "absolute" as const, top, left: 0, right: 0, height: ROW, paddingLeft: 12 + row.depth * 18 };
  const shared = { id: `outline-${index}`, role: "treeitem", "aria-level": row.depth + 1, "aria-setsize": count, "aria-posinset": index + 1, style: place };
  if (row.kind === "group") return <div {...shared} aria-expanded="true" aria-selected={false}><span className="muted cut">{row.title.slice(0, 200)}</span></div>;
  const { box } = row;
  const tally = tallyOf(props.standing?.boxes[box.id]);
  const leads = targets.get(box.id) ?? [];
  const isDim = props.found != null && !props.found.has(box.id);
  const mark = markOf(props.standing, box.id);
  return (
    <div {...shared} className={isDim ? "dim" : undefined} aria-selected={box.id === props.selected} onClick={(event) => (props.onPick ? props.onPick(box.id, event.shiftKey) : props.onSelect(box.id))} onDoubleClick={() => !props.onPick && props.onOpen?.(box.id)}>
      <Sign mark={mark} /><span className="cut">{titleOf(box).slice(0, 200)}</span>
      <span className="unseen">{mark}</span>
      {box.subtitle && <span className="muted mono cut">{box.subtitle.slice(0, 200)}</span>}
      {totalOf(tally) > 1 && <span className="counts muted">{tallyText(tally)}</span>}
      {leads.length > 0 && <span className="muted cut">→ {listed(leads)}</span>}
      {props.notes?.get(box.id) && <span className="chip">{props.notes.get(box.id)!.text}</span>}
    </div>
  );
}

/** Return the boxes in order, each group before its first box. */
export function rowsOf(picture: DrawnPicture): Row[] {
  const groups = new Map(picture.groups.map((group) => [group.id, group]));
  const opened = new Map<string, number>([["", 0]]);
  const rows: Row[] = [];
  const open = (id: string): number => {
    const known = opened.get(id);
    if (known !== undefined) return known;
    const group = groups.get(id);
    if (group === undefined) return 0;
    const depth = open(group.parent ?? "");
    rows.push({ kind: "group", id, title: group.title, depth });
    opened.set(id, depth + 1);
    return depth + 1;
  };
  for (const box of picture.boxes) if (!isDot(box)) rows.push({ kind: "box", depth: open(box.group ?? ""), box });
  return rows;
}
