/** On a narrow screen one pane is shown at a time: the picture, the timeline, or one of the tabs below them. */
import type { ReactElement } from "react";

import { choose, useChosen } from "../../shell/address";
import { TAB_TITLES, type RunChosen, type Tab } from "./chosen";

export type Pane = "picture" | "timeline" | "lower";

/** Every tab that lies below the picture is in one pane. Without a pane, a tab that was chosen on a wide screen is shown. */
export function usePane(): Pane {
  const chosen = useChosen();
  const pane = chosen.get("pane") ?? chosen.get("tab") ?? "";
  if (pane in TAB_TITLES) return "lower";
  return pane === "timeline" ? "timeline" : "picture";
}

/** Show a pane. What lies over it, the details of what is selected, is closed. */
function show(pane: Pane | Tab, tab?: Tab): void {
  choose({ pane, sel: null, ...(tab && { tab }) }, { replace: true });
}

export function PaneTabs({ chosen, tabs }: { chosen: RunChosen; tabs: readonly Tab[] }): ReactElement {
  const pane = usePane();
  return (
    <div className="pane-tabs tabs" role="group" aria-label="What is shown">
      <button type="button" aria-pressed={pane === "picture"} onClick={() => show("picture")}>Picture</button>
      <button type="button" aria-pressed={pane === "timeline"} onClick={() => show("timeline")}>Timeline</button>
      {tabs.map((tab) => (
        <button key={tab} type="button" aria-pressed={pane === "lower" && chosen.tab === tab} onClick={() => show(tab, tab)}>{TAB_TITLES[tab]}</button>
      ))}
    </div>
  );
}
