/** Follow an output stream. What comes in is put on the screen once per frame. */
import { useEffect, useState } from "react";

import { follow } from "../../api/live";
import type { ChunkView } from "../../api/schema";

/** `fold` adds chunks to what is known, and begins with `nothing`. Neither may change between two renderings. */
export function useChunks<T>(id: string, stream: string, nothing: T, fold: (known: T, chunks: ChunkView[]) => T, isWanted = true): T {
  const [known, setKnown] = useState(nothing);
  useEffect(() => {
    if (!isWanted) return undefined;
    let waiting: ChunkView[] = [];
    let frame = 0;
    const paint = (): void => {
      const chunks = waiting;
      waiting = [];
      frame = 0;
      setKnown((before) => fold(before, chunks));
    };
    const stop = follow(`/runs/${encodeURIComponent(id)}/streams/${encodeURIComponent(stream)}/live`, {}, {
      onFrame: ({ event, data }) => {
        if (event !== "chunk") return;
        waiting.push(data as ChunkView);
        frame ||= requestAnimationFrame(paint);
      },
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
      setKnown(nothing);
    };
  }, [id, stream, nothing, fold, isWanted]);
  return known;
}
