/** Walking through a picture with the arrow keys, and looking at it so that what is looked at stays where it is. Pure. */
import type { DrawnBox, DrawnPicture } from "../api/schema";
import { isDot } from "./picture-look";

export type Step = "up" | "down" | "left" | "right";
export type View = { x: number; y: number; zoom: number };
export type Size = { width: number; height: number };

const ZOOM_LEAST = 0.02;
const ZOOM_READABLE = 0.45;
/** From here on the titles of boxes can be read, which are large when seen from afar. */
const ZOOM_TITLES = 0.33;
const MARGIN = 24;

/** Return the box that a step leads to. Down and up follow arrows, left and right go to siblings. */
export function walk(picture: DrawnPicture, from: string | null, step: Step): string | null {
  const boxes = picture.boxes.filter((box) => !isDot(box));
  const here = boxes.find((box) => box.id === from);
  if (here === undefined) return boxes[0]?.id ?? null;
  if (step === "left" || step === "right") return sibling(boxes, here, step);
  const known = new Map(boxes.map((box) => [box.id, box]));
  const along = picture.arrows
    .filter((arrow) => arrow.kind !== "back" && (step === "down" ? arrow.source : arrow.to) === here.id)
    .map((arrow) => known.get(step === "down" ? arrow.to : arrow.source))
    .filter((box): box is DrawnBox => box !== undefined && box.id !== here.id);
  const middle = centre(here);
  along.sort((one, other) => Math.abs(centre(one) - middle) - Math.abs(centre(other) - middle));
  return along[0]?.id ?? here.id;
}

/** Return the next box beside one: first those of its row, then across to the nearest. */
function sibling(boxes: readonly DrawnBox[], here: DrawnBox, step: "left" | "right"): string {
  const sign = step === "right" ? 1 : -1;
  const beside = boxes.filter((box) => box.id !== here.id && box.y < here.y + here.h && here.y < box.y + box.h && sign * (centre(box) - centre(here)) > 0);
  beside.sort((one, other) => sign * (centre(one) - centre(other)));
  return beside[0]?.id ?? here.id;
}

function centre(box: DrawnBox): number {
  return box.x + box.w / 2;
}

/** Return the view that shows the whole picture. */
export function fitted(picture: DrawnPicture, size: Size): View {
  const zoom = Math.min(1, (size.width - 2 * MARGIN) / Math.max(1, picture.width), (size.height - 2 * MARGIN) / Math.max(1, picture.height));
  const used = Math.max(ZOOM_LEAST, zoom);
  return { zoom: used, x: (size.width - picture.width * used) / 2, y: (size.height - picture.height * used) / 2 };
}

/** Return the view with which a picture opens: all of it if its titles can be read so, else around a box, else where it begins. */
export function firstView(picture: DrawnPicture, size: Size, box: DrawnBox | undefined): View {
  const whole = fitted(picture, size);
  if (whole.zoom >= ZOOM_TITLES) return whole;
  const zoom = box ? 0.8 : Math.max(ZOOM_READABLE, Math.min(1, (size.width - 2 * MARGIN) / Math.max(1, picture.width)));
  if (box) return { zoom, ...centred(box, size, zoom) };
  const first = picture.boxes[0];
  const isNarrow = picture.width * zoom <= size.width;
  // A wide picture may have no box in the middle of its top.
  const x = first === undefined || isNarrow ? (size.width - picture.width * zoom) / 2 : centred(first, size, zoom).x;
  return { zoom, x, y: MARGIN - (first?.y ?? 0) * zoom };
}

export function centred(box: DrawnBox, size: Size, zoom: number): { x: number; y: number } {
  return { x: size.width / 2 - (box.x + box.w / 2) * zoom, y: size.height / 2 - (box.y + box.h / 2) * zoom };
}

export function isInSight(box: DrawnBox, view: View, size: Size): boolean {
  const left = box.x * view.zoom + view.x;
  const top = box.y * view.zoom + view.y;
  return left >= 0 && top >= 0 && left + box.w * view.zoom <= size.width && top + box.h * view.zoom <= size.height;
}

/** Return the box nearest to a point of the screen. */
export function nearest(picture: DrawnPicture, view: View, x: number, y: number): DrawnBox | undefined {
  const [px, py] = [(x - view.x) / view.zoom, (y - view.y) / view.zoom];
  let best: DrawnBox | undefined;
  let least = Infinity;
  for (const box of picture.boxes) {
    const far = Math.hypot(box.x + box.w / 2 - px, box.y + box.h / 2 - py);
    if (far < least) [best, least] = [box, far];
  }
  return best;
}

/** Return the view of a picture that has grown in which a box is where it was on the screen. */
export function held(view: View, before: DrawnBox, after: DrawnBox): View {
  return { zoom: view.zoom, x: view.x + (before.x - after.x) * view.zoom, y: view.y + (before.y - after.y) * view.zoom };
}
