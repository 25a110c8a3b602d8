/**
 * Where one looks at a picture. It moves only when a person moves it, or selects what is out of sight; a picture that
 * follows its run shows all that has come until a person has moved it. Until a person does anything, it opens again
 * whenever its place gets another size: what is above it comes little by little.
 */
import { useReactFlow } from "@xyflow/react";
import { useCallback, useEffect, useLayoutEffect, useRef, type PointerEvent, type RefObject } from "react";

import type { DrawnBox, DrawnPicture, StandingView } from "../api/schema";
import type { Mark } from "../shell/words";
import type { PictureProps } from "./picture";
import { markOf } from "./picture-look";
import { centred, firstView, fitted, held, isInSight, nearest, type Size } from "./picture-walk";

const ACTIVE: ReadonlySet<Mark> = new Set(["working", "waiting", "queued"]);

const TOUCHES = ["pointerdown", "keydown", "wheel"] as const;

type SteadyView = { open: () => void; fit: () => void; onMove: (event: unknown) => void; onPointer: (event: PointerEvent) => void };

export function useSteadyView(element: RefObject<HTMLDivElement | null>, { picture, selected, standing, follows = null }: PictureProps): SteadyView {
  const flow = useReactFlow();
  const shown = useRef<DrawnPicture | null>(null);
  const pointer = useRef<{ x: number; y: number } | null>(null);
  const isMoved = useRef(false);

  const open = useCallback(() => {
    shown.current = picture;
    void flow.setViewport(firstView(picture, sizeOf(element), boxOf(picture, selected) ?? activeBox(picture, standing)));
  }, [flow, picture, selected, standing, element]);

  useOpenedAgain(element, shown, open);

  useEffect(() => {
    if (follows !== null && follows > 0) isMoved.current = false;
  }, [follows]);

  useLayoutEffect(() => {
    const before = shown.current;
    if (before === null || before === picture) return;
    shown.current = picture;
    if (before.digest === picture.digest) return;
    if (follows !== null && !isMoved.current) return open();
    const view = flow.getViewport();
    const { width, height } = sizeOf(element);
    const at = pointer.current ?? { x: width / 2, y: height / 2 };
    const anchor = boxOf(before, selected) ?? nearest(before, view, at.x, at.y);
    const now = boxOf(picture, anchor?.id ?? null);
    if (anchor && now) void flow.setViewport(held(view, anchor, now));
  }, [flow, picture, selected, element, follows, open]);

  useEffect(() => {
    const box = shown.current && boxOf(shown.current, selected);
    if (!box) return;
    const view = flow.getViewport();
    if (!isInSight(box, view, sizeOf(element))) void flow.setViewport({ zoom: view.zoom, ...centred(box, sizeOf(element), view.zoom) });
  }, [flow, selected, element]);

  return {
    open,
    fit: () => void flow.setViewport(fitted(picture, sizeOf(element))),
    onMove: (event) => {
      // What the program moves has no event.
      if (event) isMoved.current = true;
    },
    onPointer: (event) => {
      const area = element.current?.getBoundingClientRect();
      if (area) pointer.current = { x: event.clientX - area.left, y: event.clientY - area.top };
    },
  };
}

/** Open the picture again if its place gets another size before a person has done anything, or had none before. */
function useOpenedAgain(element: RefObject<HTMLDivElement | null>, shown: RefObject<DrawnPicture | null>, open: () => void): void {
  const kept = useRef(open);
  useEffect(() => {
    kept.current = open;
  });
  useEffect(() => {
    const place = element.current;
    if (place === null) return undefined;
    let before = sizeOf(element);
    let isTouched = false;
    const touch = (): void => { isTouched = true; };
    const observer = new ResizeObserver(() => {
      const size = sizeOf(element);
      if (shown.current !== null && size.width > 0 && !isSame(size, before) && (!isTouched || before.width === 0)) kept.current();
      before = size;
    });
    observer.observe(place);
    for (const name of TOUCHES) window.addEventListener(name, touch, true);
    return () => {
      observer.disconnect();
      for (const name of TOUCHES) window.removeEventListener(name, touch, true);
    };
  }, [element, shown]);
}

function isSame(one: Size, other: Size): boolean {
  return one.width === other.width && one.height === other.height;
}

function sizeOf(element: RefObject<HTMLElement | null>): Size {
  return { width: element.current?.clientWidth ?? 0, height: element.current?.clientHeight ?? 0 };
}

/** The first box at which something failed or goes on. */
function activeBox(picture: DrawnPicture, standing: StandingView | undefined): DrawnBox | undefined {
  const isActive = (box: DrawnBox): boolean => ACTIVE.has(markOf(standing, box.id));
  return picture.boxes.find((box) => markOf(standing, box.id) === "failed") ?? picture.boxes.find(isActive);
}

function boxOf(picture: DrawnPicture, id: string | null): DrawnBox | undefined {
  return id === null ? undefined : picture.boxes.find((box) => box.id === id);
}
