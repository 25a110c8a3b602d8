/** The canvas of a picture. Loaded when a picture is first drawn. */
import "@xyflow/react/dist/base.css";

import { MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, useStore, type Node } from "@xyflow/react";
import { useCallback, useLayoutEffect, useMemo, useRef, type ReactElement, type ReactNode } from "react";

import type { DrawnBox } from "../api/schema";
import { useKeys } from "../shell/keys";
import { onPictureKey, type PictureProps } from "./picture";
import { PictureArrow } from "./picture-arrow";
import { PictureBox, PictureGroup, type BoxNode } from "./picture-box";
import { edgesOf, nodesOf } from "./picture-flow";
import { markOf, targetsOf } from "./picture-look";
import { NO_NOTES, NOTHING, PictureContext, type PictureState } from "./picture-state";
import { useSteadyView } from "./picture-view";

const NODE_TYPES = { box: PictureBox, area: PictureGroup };
const EDGE_TYPES = { arrow: PictureArrow };
const MINIMAP_FROM = 60;
const FAR_ZOOM = 0.45;
/** So small that titles are specks: boxes are blocks in their colour. */
const TINY_ZOOM = 0.2;

type CanvasProps = PictureProps & { letters: ReadonlyMap<string, string>; tools: ReactNode };

export default function PictureCanvas(props: CanvasProps): ReactElement {
  return <ReactFlowProvider><Canvas {...props} /></ReactFlowProvider>;
}

function Canvas(props: CanvasProps): ReactElement {
  const { picture, standing, selected, letters } = props;
  const element = useRef<HTMLDivElement>(null);
  const nodes = useMemo(() => nodesOf(picture), [picture]);
  const edges = useMemo(() => edgesOf(picture), [picture]);
  const targets = useMemo(() => targetsOf(picture), [picture]);
  const isFar = useStore((store) => store.transform[2] < FAR_ZOOM);
  const isTiny = useStore((store) => store.transform[2] < TINY_ZOOM);
  const state = useMemo<PictureState>(
    () => ({ standing, selected, lit: props.lit ?? NOTHING, found: props.found ?? null, notes: props.notes ?? NO_NOTES, letters, targets, isFar }),
    [standing, selected, props.lit, props.found, props.notes, letters, targets, isFar],
  );
  const view = useSteadyView(element, props);
  const colour = useCallback((node: Node) => `var(--${markOf(standing, (node as BoxNode).data.box?.id ?? "")}-line)`, [standing]);
  useCanvasKeys(props, view.fit);
  return (
    <div ref={element} data-event={standing?.seq} className={["picture", isFar && "far", isTiny && "tiny"].filter(Boolean).join(" ")} onPointerMove={view.onPointer}>
      <PictureContext.Provider value={state}>
        <ReactFlow
          tabIndex={0} aria-roledescription="picture" aria-label={`Picture of ${picture.title.slice(0, 200)}. Arrow keys walk, o shows an outline.`}
          onKeyDown={(event) => onPictureKey(event, props)}
          nodes={nodes} edges={edges} nodeTypes={NODE_TYPES} edgeTypes={EDGE_TYPES} onlyRenderVisibleElements minZoom={0.02} maxZoom={2}
          nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false}
          disableKeyboardA11y deleteKeyCode={null} selectionKeyCode={null} multiSelectionKeyCode={null} zoomActivationKeyCode={null} panActivationKeyCode={null}
          zoomOnDoubleClick={false} onInit={view.open} onMoveStart={view.onMove} onPaneClick={() => props.onSelect(null)}
          onNodeClick={(event, node) => clicked(node, props, element.current, event.shiftKey)}
          onNodeDoubleClick={(_, node) => node.type === "box" && !props.onPick && props.onOpen?.((node as BoxNode).data.box.id)}
        >
          {picture.boxes.length >= MINIMAP_FROM && <MiniMap pannable zoomable nodeColor={colour} ariaLabel="Overview of the picture" />}
        </ReactFlow>
      </PictureContext.Provider>
      <div className="picture-tools"><button type="button" title="Show all of it (f)" onClick={view.fit}>Fit</button>{props.tools}</div>
      {letters.size > 0 && (
        <ul className="picture-letters" aria-label="Groups">
          {picture.groups.map((group) => letters.has(group.id) && <li key={group.id}><strong>{letters.get(group.id)}</strong> {group.title.slice(0, 80)}</li>)}
        </ul>
      )}
    </div>
  );
}

function clicked(node: Node, props: PictureProps, element: HTMLElement | null, isMore: boolean): void {
  element?.querySelector<HTMLElement>(".react-flow")?.focus({ preventScroll: true });
  const box: DrawnBox | undefined = node.type === "box" ? (node as BoxNode).data.box : undefined;
  if (box?.id && props.onPick) props.onPick(box.id, isMore);
  else props.onSelect(box?.id || null);
}

function useCanvasKeys(props: PictureProps, fit: () => void): void {
  const flow = useReactFlow();
  useKeys("Picture", [
    { keys: "f", does: "Fit the picture", run: fit },
    { keys: "+", does: "Zoom in", run: () => void flow.zoomIn() },
    { keys: "-", does: "Zoom out", run: () => void flow.zoomOut() },
  ]);
  const kept = useRef(props);
  useLayoutEffect(() => {
    kept.current = props;
  });
  useLayoutEffect(() => {
    // The keys of the picture also act while nothing has the focus.
    const onKey = (event: KeyboardEvent): void => {
      const here = document.activeElement;
      if (!event.defaultPrevented && (here === document.body || here?.id === "main")) onPictureKey(event, kept.current);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
