/** The source of a version, as its author wrote it. */
import type { ReactElement } from "react";

import { api, Problem, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import { ProblemNote } from "../../parts/problem";
import { copyText } from "../../shell/notices";

export function Source({ name, version }: { name: string; version: string }): ReactElement | null {
  const source = useAsked(["workflow", name, "source", version], (signal) => read(api.GET("/api/v1/workflows/{name}/versions/{version}/source", { params: { path: { name, version } }, signal })));
  if (source.error instanceof Problem && source.error.status === 404) return null;
  if (source.data?.text === "") return null;
  return (
    <section aria-labelledby="source-title">
      <div className="row">
        <h2 id="source-title">Source</h2>
        {source.data && <span className="muted">{source.data.is_written ? "as it was written" : "made from the stored document"}{source.data.where && `, ${source.data.where}`}</span>}
        <span className="grow" />
        {source.data && <button type="button" onClick={() => copyText(source.data.text)}>Copy</button>}
      </div>
      {source.error && <ProblemNote error={source.error} retry={() => void source.refetch()} />}
      {source.data && <pre className="source" tabIndex={0} role="group" aria-label="Text of the source">{source.data.text}</pre>}
    </section>
  );
}
