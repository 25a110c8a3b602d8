/** What steps print, and their output streams, such as the tokens of a model, as they are written. */
import { memo, useLayoutEffect, useMemo, useRef, useState, type ReactElement, type RefObject } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import { ProblemNote } from "../../parts/problem";
import { bytesText } from "../../parts/value-text";
import { choose, useChosen } from "../../shell/address";
import type { RunChosen } from "./chosen";
import { useChunks } from "./chunks";
import { runKey } from "./data";
import { downloadStream } from "./output-download";
import { formerPieces, NOTHING, withChunks, type Piece, type Pieces } from "./output-pieces";
import { Printed } from "./printed";

const NEAR_PX = 24;
const PIECES_SHOWN = 400;
/** In the address. No stream has this name, because names do not begin with an exclamation mark. */
const PRINTED = "!printed";

export function Output({ run }: { run: RunChosen }): ReactElement {
  const asked = useAsked(runKey({ id: run.id, at: null }, "streams"), (signal) => read(api.GET("/api/v1/runs/{id}/streams", { params: { path: { id: run.id } }, signal })));
  const names = Object.keys(asked.data?.streams ?? {});
  const chosen = useChosen().get("stream");
  const stream = chosen === PRINTED ? undefined : (names.find((name) => name === chosen) ?? names[0]);
  return (
    <div className="output">
      {asked.error && <ProblemNote error={asked.error} retry={() => void asked.refetch()} />}
      {names.length > 0 && (
        <div className="output-head" role="group" aria-label="Streams">
          <button type="button" className="chip" aria-pressed={stream === undefined} onClick={() => choose({ stream: PRINTED }, { replace: true })}>Printed lines</button>
          {names.map((name) => (
            <button key={name} type="button" className="chip" aria-pressed={name === stream} onClick={() => choose({ stream: name }, { replace: true })}>
              {name} <span className="muted num">{asked.data?.streams[name]}</span>
            </button>
          ))}
        </div>
      )}
      {stream !== undefined ? <Stream key={stream} id={run.id} stream={stream} /> : asked.data && <Printed key={run.id} id={run.id} />}
    </div>
  );
}

function Stream({ id, stream }: { id: string; stream: string }): ReactElement {
  const output = useChunks(id, stream, NOTHING, withChunks);
  const [problem, setProblem] = useState<unknown>(null);
  const former = useMemo(() => formerPieces(output.pieces), [output]);
  const shown = output.pieces.slice(-PIECES_SHOWN);
  const element = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useEnd(output, element);
  return (
    <>
      <div className="output-head">
        <span className="mono">{stream}</span>
        <span className="muted">{bytesText(output.size)}{output.isCut || shown.length < output.pieces.length ? ", the newest shown" : ""}</span>
        {former.size > 0 && <span className="muted">crossed out: from an attempt that was repeated</span>}
        <span className="grow" />
        <button type="button" className="plain" onClick={() => void downloadStream(id, stream).catch(setProblem)}>Download all</button>
      </div>
      {problem !== null && <ProblemNote error={problem} />}
      <div className="output-text" ref={element} onScroll={(event) => setAtEnd(isNearEnd(event.currentTarget))} tabIndex={0} role="log" aria-label={`Output ${stream}`} aria-live="off">
        {shown.map((piece, at) => (
          <OutputPiece key={piece.key} piece={piece} isFormer={former.has(piece.key)} isOther={at === 0 || isOther(shown[at - 1]!, piece)} />
        ))}
      </div>
      {!isAtEnd && <button type="button" className="log-pill" onClick={() => setAtEnd(true)}>Newest output</button>}
    </>
  );
}

function isOther(one: Piece, other: Piece): boolean {
  return one.by !== other.by || one.attempt !== other.attempt;
}

const OutputPiece = memo(function OutputPiece({ piece, isFormer, isOther }: { piece: Piece; isFormer: boolean; isOther: boolean }): ReactElement {
  return (
    <>
      {isOther && <div className="output-by">{piece.by || "the workflow"}{piece.attempt > 1 ? `, attempt ${piece.attempt}` : ""}{isFormer ? ", repeated since" : ""}</div>}
      <pre className={piece.isText ? "output-piece" : "output-piece output-row"} data-former={isFormer}>{piece.text}</pre>
    </>
  );
});

/** Stay at the end until somebody scrolls away from it. */
function useEnd(output: Pieces, element: RefObject<HTMLDivElement | null>): [boolean, (isAtEnd: boolean) => void] {
  const [isAtEnd, setAtEnd] = useState(true);
  useLayoutEffect(() => {
    if (isAtEnd) element.current?.scrollTo({ top: element.current.scrollHeight });
  }, [output, isAtEnd, element]);
  return [isAtEnd, setAtEnd];
}

function isNearEnd(element: HTMLElement): boolean {
  return element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
}
