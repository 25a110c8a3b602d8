/**
 * A picture: boxes and arrows where the server put them, drawn on a canvas or shown as an outline.
 *
 * The canvas is loaded when it is first needed. Pictures above a size begin as an outline.
 */
import "./picture.css";

import { useMemo, useState, type KeyboardEvent, type ReactElement } from "react";

import type { DrawnPicture, StandingView } from "../api/schema";
import { part } from "../shell/part";
import { counted } from "../shell/words";
import { groupLetters, isDot } from "./picture-look";
import { Outline } from "./picture-outline";
import { walk, type Step } from "./picture-walk";

const Canvas = part(() => import("./picture-canvas"));
const DRAWN_MAX = 2000;
const STEPS: Record<string, Step> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

/** A word about a box: in which of two pictures it is, whether it differs, or what it is to a plan. */
export type BoxNote = { kind: "added" | "removed" | "changed" | "goal" | "planned" | "conditional" | "lacking" | "grey"; text: string };

export type PictureProps = {
  picture: DrawnPicture;
  standing: StandingView | undefined;
  /** The id of the selected box. */
  selected: string | null;
  onSelect: (box: string | null) => void;
  /** Go into the box: it stands for another run. */
  onOpen?: (box: string) => void;
  /** A click on a box, where that does more than to select it; `isMore` with Shift. */
  onPick?: (box: string, isMore: boolean) => void;
  onLeave?: () => void;
  /** Show all of it again when it grows, until a person moves it. Another number forgets what the person did. */
  follows?: number | null;
  /** Arrows that are pointed out. */
  lit?: ReadonlySet<string>;
  /** Boxes that a filter leaves in sight; the others are dimmed. */
  found?: ReadonlySet<string> | null;
  notes?: ReadonlyMap<string, BoxNote>;
  isOutline: boolean;
  onOutline: (isOutline: boolean) => void;
};

export function Picture(props: PictureProps): ReactElement {
  const { picture, isOutline } = props;
  const [isForced, setForced] = useState(false);
  const boxes = useMemo(() => picture.boxes.filter((box) => !isDot(box)).length, [picture]);
  const isLarge = boxes > DRAWN_MAX && !isForced;
  const letters = useMemo(() => groupLetters(picture), [picture]);
  const tools = (
    <>
      {isLarge && <span className="chip">{counted(boxes, "box", "boxes")}</span>}
      {isLarge && <button type="button" onClick={() => setForced(true)}>Draw it anyway</button>}
      {!isLarge && (
        <button type="button" aria-pressed={isOutline} onClick={() => props.onOutline(!isOutline)} title={isOutline ? "Show the picture (o)" : "Show as an outline (o)"}>
          {isOutline ? "Picture" : "Outline"}
        </button>
      )}
    </>
  );
  if (isOutline || isLarge) return <div className="picture" data-event={props.standing?.seq}><div className="picture-tools">{tools}</div><Outline {...props} /></div>;
  return (
    <Canvas {...props} letters={letters} tools={tools} />
  );
}

/** Walk, enter and leave with the keys of a picture. Returns whether the key was one of them. */
export function onPictureKey(event: KeyboardEvent | globalThis.KeyboardEvent, props: PictureProps): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const step = STEPS[event.key];
  if (step) props.onSelect(walk(props.picture, props.selected, step));
  else if (event.key === "Enter" && props.selected !== null && props.onOpen) props.onOpen(props.selected);
  else if (event.key === "Backspace" && props.onLeave) props.onLeave();
  else return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
}
