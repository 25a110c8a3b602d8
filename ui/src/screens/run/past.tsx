/** The line that says that the screen shows the past. */
import type { ReactElement } from "react";

import type { RunDetail, StandingView } from "../../api/schema";
import { Moment } from "../../parts/time";
import { travel } from "./chosen";

export function PastNote({ at, run, standing }: { at: number; run: RunDetail; standing: StandingView | undefined }): ReactElement {
  return (
    <div className="past-note" role="status">
      as it stood after event {at.toLocaleString("en")} of {run.seq.toLocaleString("en")}
      {standing?.at && standing.seq === at && <>, <Moment at={standing.at} /></>} ·{" "}
      <button type="button" className="plain" onClick={() => travel(null)}>Back to now</button>
    </div>
  );
}
