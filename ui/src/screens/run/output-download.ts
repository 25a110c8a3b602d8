/** Download all of a stream, page by page. Text becomes a text file; other chunks become lines of JSON. */
import { api, read } from "../../api/client";
import type { ChunkView } from "../../api/schema";

const PAGE = 500;

export async function downloadStream(id: string, stream: string): Promise<void> {
  const parts: string[] = [];
  let isText = true;
  for (let after: number | null = 0; after !== null; ) {
    const query: { after: number; limit: number } = { after, limit: PAGE };
    const page: { chunks: ChunkView[]; after: number | null } = await read(
      api.GET("/api/v1/runs/{id}/streams/{stream}", { params: { path: { id, stream }, query } }),
    );
    for (const { chunk } of page.chunks) {
      const isLine = typeof chunk !== "string";
      if (isLine) isText = false;
      parts.push(isLine ? JSON.stringify(chunk) + "\n" : chunk);
    }
    after = page.after;
  }
  save(new Blob(parts, { type: "text/plain" }), `${stream}.${isText ? "txt" : "jsonl"}`);
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(url);
}
