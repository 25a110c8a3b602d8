/** On a narrow screen one pane is shown at a time: picture, timeline, log or data. */
import type { ReactElement } from "react";

import { choose, useChosen } from "../../shell/address";
import type { RunChosen } from "./chosen";

const PANES = ["picture", "timeline", "log", "data"] as const;
type Pane = (typeof PANES)[number];
const TITLES: Record<Pane, string> = { picture: "Picture", timeline: "Timeline", log: "Log", data: "Data" };

export function usePane(): Pane {
  const chosen = useChosen().get("pane");
  return PANES.find((pane) => pane === chosen) ?? "picture";
}

export function PaneTabs({ chosen }: { chosen: RunChosen }): ReactElement {
  const pane = usePane();
  return (
    <div className="pane-tabs tabs" role="group" aria-label="What is shown">
      {PANES.map((one) => (
        <button key={one} type="button" aria-pressed={one === pane} onClick={() => choose({ pane: one === "picture" ? null : one, ...tabOf(one, chosen) }, { replace: true })}>{TITLES[one]}</button>
      ))}
    </div>
  );
}

/** The panes of log and data are tabs of one pane. */
function tabOf(pane: Pane, chosen: RunChosen): { tab?: string | null } {
  if (pane === "data") return { tab: "data" };
  return pane === "log" && chosen.tab === "data" ? { tab: null } : {};
}
