/** The boxes and arrows of a picture as the canvas wants them: with sizes and handles, so that it measures nothing. Pure. */
import { Position } from "@xyflow/react";

import type { DrawnBox, DrawnPicture } from "../api/schema";
import type { ArrowEdge } from "./picture-arrow";
import type { BoxNode, GroupNode } from "./picture-box";

/** Nodes need a name, and the start of a picture has none. */
export function nodeId(box: string): string {
  return "b:" + box;
}

export function nodesOf(picture: DrawnPicture): (BoxNode | GroupNode)[] {
  const groups = picture.groups.filter((group) => group.w && group.h).map((group): GroupNode => ({
    id: "g:" + group.id, type: "area", data: { group }, position: { x: group.x ?? 0, y: group.y ?? 0 },
    width: group.w!, height: group.h!, measured: { width: group.w!, height: group.h! }, zIndex: -1, selectable: false,
  }));
  return [...groups, ...picture.boxes.map(nodeOf)];
}

function nodeOf(box: DrawnBox): BoxNode {
  const middle = box.w / 2;
  return {
    id: nodeId(box.id), type: "box", data: { box }, position: { x: box.x, y: box.y }, width: box.w, height: box.h,
    measured: { width: box.w, height: box.h },
    handles: [
      { type: "source", position: Position.Bottom, x: middle, y: box.h, width: 1, height: 1 },
      { type: "target", position: Position.Top, x: middle, y: 0, width: 1, height: 1 },
    ],
  };
}

export function edgesOf(picture: DrawnPicture): ArrowEdge[] {
  return picture.arrows.map((arrow, at) => ({
    id: `${at}:${arrow.id}`, type: "arrow", source: nodeId(arrow.source), target: nodeId(arrow.to), data: { arrow }, zIndex: 0,
  }));
}
