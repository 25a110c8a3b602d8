/** The steps that goals are planned with, and their health. */
import type { ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { Rows } from "../../parts/rows";
import { MarkWord } from "../../parts/state";
import { pathTo, queryText } from "../../shell/address";
import { Link } from "../../shell/link";

export function Steps(): ReactElement {
  const steps = usePages(["steps"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/steps", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.steps, cursor: page.cursor };
  }, 10_000);
  return (
    <Rows label="Steps" head={["health", "step", "from", "error"]} error={steps.error} retry={steps.retry} more={steps.more} empty="No step says what it gives. A step takes part in goals once it does.">
      {steps.rows?.map((step) => (
        <tr key={step.id}>
          <td><MarkWord mark={step.error ? "failed" : step.health === "unknown" ? "idle" : "done"} word={step.health} /></td>
          <td className="mono"><Link to={pathTo("goals") + queryText({ want: step.id })}>{step.id}</Link></td>
          <td>{step.stored ? "the store" : "a program"}</td>
          <td>{step.error}</td>
        </tr>
      ))}
    </Rows>
  );
}
