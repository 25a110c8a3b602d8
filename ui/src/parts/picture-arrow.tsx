/** An arrow of a picture, along the points that the server gives. Those that were taken are strong. */
import { EdgeLabelRenderer, type Edge, type EdgeProps } from "@xyflow/react";
import { memo, useContext, type ReactElement } from "react";

import type { DrawnArrow } from "../api/schema";
import { arrowHead, arrowPath, arrowWidth } from "./picture-look";
import { PictureContext } from "./picture-state";

export type ArrowEdge = Edge<{ arrow: DrawnArrow }, "arrow">;

export const PictureArrow = memo(function PictureArrow({ data }: EdgeProps<ArrowEdge>): ReactElement | null {
  const state = useContext(PictureContext);
  const arrow = data?.arrow;
  if (arrow === undefined) return null;
  const times = state.standing?.arrows[arrow.id] ?? 0;
  const isDim = state.found !== null && !(state.found.has(arrow.source) && state.found.has(arrow.to));
  const isFaint = state.standing !== undefined && times === 0;
  const classes = [arrow.kind ?? "main", isFaint && "faint", state.lit.has(arrow.id) && "lit", isDim && "dim"].filter(Boolean).join(" ");
  return (
    <>
      <g className={`picture-arrow ${classes}`}>
        <path d={arrowPath(arrow.points)} strokeWidth={arrowWidth(times)} />
        <polygon points={arrowHead(arrow.points)} />
      </g>
      {arrow.label && arrow.label_at && !state.isFar && <Label arrow={arrow} at={arrow.label_at} classes={classes} />}
    </>
  );
});

function Label({ arrow, at: [x, y, w, h], classes }: { arrow: DrawnArrow; at: readonly [number, number, number, number]; classes: string }): ReactElement {
  return (
    <EdgeLabelRenderer>
      <div className={`picture-label ${classes}`} title={(arrow.tip || arrow.label || "").slice(0, 2000)} style={{ transform: `translate(${x}px, ${y}px)`, width: w, height: h }}>
        <span>{(arrow.label ?? "").slice(0, 300)}</span>
      </div>
    </EdgeLabelRenderer>
  );
}
