/** A box of a picture: its shape, its sign, what it is called and does, and how many of its places stand how. */
import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { memo, useContext, useEffect, useRef, type ReactElement, type RefObject } from "react";

import type { DrawnBox, DrawnGroup } from "../api/schema";
import { choiceCorners, isDot, leadsToRun, nameOf, markOf, SIGN_PATHS, tallyOf, tallyText, totalOf, type Tally } from "./picture-look";
import { PictureContext } from "./picture-state";
import type { Mark } from "../shell/words";

export type BoxNode = Node<{ box: DrawnBox }, "box">;
export type GroupNode = Node<{ group: DrawnGroup }, "area">;

const TEXT_MAX = 300;

function boxElementId(id: string): string {
  return "box-" + encodeURIComponent(id);
}

export const PictureBox = memo(function PictureBox({ data }: NodeProps<BoxNode>): ReactElement {
  const state = useContext(PictureContext);
  const { box } = data;
  const mark = markOf(state.standing, box.id);
  const isSelected = state.selected === box.id;
  const element = useNamedInCanvas(isSelected);
  if (isDot(box)) return <Dot box={box} mark={mark} />;
  const isDim = state.found !== null && !state.found.has(box.id);
  const note = state.notes.get(box.id);
  const isWide = box.shape === "choice" || box.shape === "end" || box.shape === "start";
  const classes = ["picture-box", mark, isWide && "wide", isSelected && "selected", isDim && "dim", note?.kind].filter(Boolean).join(" ");
  return (
    <div
      ref={element} id={boxElementId(box.id)} className={classes} role="button" tabIndex={-1} aria-pressed={isSelected}
      aria-label={nameOf(box, state.standing, state.targets.get(box.id) ?? []) + (note?.text ? `, ${note.text}` : "")} title={tipOf(box)}
    >
      <Outline box={box} mark={mark} />
      <Inside box={box} letter={state.letters.get(box.group ?? "")} isFar={state.isFar} tally={tallyOf(state.standing?.boxes[box.id])} badges={state.standing?.boxes[box.id]?.badges} />
      {note?.text && !state.isFar && <span className="note">{note.text}</span>}
      <Ends />
    </div>
  );
});

/** Names the selected box in the canvas while it is drawn. Boxes outside the visible part are not. */
function useNamedInCanvas(isSelected: boolean): RefObject<HTMLDivElement | null> {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const canvas = element.current?.closest(".react-flow");
    if (!isSelected || !element.current || !canvas) return undefined;
    canvas.setAttribute("aria-activedescendant", element.current.id);
    return () => canvas.removeAttribute("aria-activedescendant");
  }, [isSelected]);
  return element;
}

/** The canvas wants to know where arrows begin and end, though the server's points say it. */
function Ends(): ReactElement {
  return (
    <>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </>
  );
}

function tipOf(box: DrawnBox): string {
  return [box.title, box.tip || box.subtitle].filter(Boolean).join("\n").slice(0, 2000);
}

function Dot({ box, mark }: { box: DrawnBox; mark: Mark }): ReactElement {
  return (
    <div className={`picture-box ${mark}`} title={box.tip}>
      <svg width={box.w} height={box.h} aria-hidden="true"><rect className="fill" width={box.w} height={box.h} rx={8} /></svg>
      <Ends />
    </div>
  );
}

function Outline({ box: { w, h, shape, kind }, mark }: { box: DrawnBox; mark: Mark }): ReactElement {
  const x = shape === "choice" || shape === "end" || shape === "start" ? 29 : 21;
  const sign = SIGN_PATHS[mark];
  return (
    <svg width={w} height={h} aria-hidden="true">
      {shape === "choice" ? <polygon className="shape" points={choiceCorners(w, h)} /> : <rect className="shape" width={w} height={h} rx={radiusOf(shape, h)} />}
      {shape === "join" && <rect className="fill" x={-5} y={-2} width={w + 10} height={5} rx={2.5} />}
      {leadsToRun(kind) && <path className="fill" d={`M${w - 16} ${h} L${w} ${h - 16} L${w} ${h - 8} Q${w} ${h} ${w - 8} ${h} Z`} />}
      <circle className="fill" cx={x} cy={19} r={7.5} />
      {sign && <path className="sign" transform={`translate(${x} 19)`} d={sign} />}
    </svg>
  );
}

function radiusOf(shape: DrawnBox["shape"], h: number): number {
  if (shape === "start" || shape === "end") return Math.min(h / 2, 22);
  return shape === "join" ? 4 : 9;
}

type InsideProps = { box: DrawnBox; letter: string | undefined; isFar: boolean; tally: Tally[]; badges: string[] | undefined };

function Inside({ box, letter, isFar, tally, badges }: InsideProps): ReactElement {
  const isMany = totalOf(tally) > 1;
  return (
    <>
      <div className="inside">
        <div className="name cut">{(box.title ?? "").slice(0, TEXT_MAX)}</div>
        {!isFar && box.subtitle && <div className="does cut">{box.subtitle.slice(0, TEXT_MAX)}</div>}
        {!isFar && (isMany || badges) && <div className="counts cut">{[isMany ? tallyText(tally) : "", ...(badges ?? [])].filter(Boolean).join("  ")}</div>}
      </div>
      {!isFar && letter && <span className="letter">{letter}</span>}
      {!isFar && isMany && (
        <div className="share" aria-hidden="true">
          {tally.map(({ mark, count }) => <span key={mark} className={`bar-${mark}`} style={{ flexGrow: count }} />)}
        </div>
      )}
    </>
  );
}

/** The area in which the boxes of a fan-out, a loop or a scope lie together. */
export const PictureGroup = memo(function PictureGroup({ data }: NodeProps<GroupNode>): ReactElement {
  const { isFar } = useContext(PictureContext);
  return <div className="picture-group">{!isFar && <span className="cut" title={data.group.title}>{data.group.title.slice(0, TEXT_MAX)}</span>}</div>;
});
