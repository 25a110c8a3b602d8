/** What lies below the picture: the conversation of an agent, the log, the data, the output and the changes of a run. */
import "./bottom.css";

import type { KeyboardEvent, ReactElement } from "react";

import type { RunDetail } from "../../api/schema";
import { choose, useChosen } from "../../shell/address";
import { Changes } from "./changes";
import { chooseTab, TAB_TITLES, TABS, type RunChosen, type Tab } from "./chosen";
import { Conversation, isAgentRun } from "./conversation";
import { Data } from "./held";
import { Log, LOG_MODES, type LogMode } from "./log";
import { Output } from "./output";

const MODE_TITLES: Record<LogMode, string> = { compact: "Compact", all: "All", json: "JSON" };

/** Return the tabs of a run. That of an agent begins with its conversation, which is shown unless another is chosen. */
export function useTabs(chosen: RunChosen, detail: RunDetail): { run: RunChosen; tabs: readonly Tab[] } {
  const address = useChosen();
  if (!isAgentRun(detail)) return { run: chosen, tabs: TABS.slice(1) };
  const isChosenTab = address.has("tab") || (address.get("pane") ?? "") in TAB_TITLES;
  return { run: isChosenTab ? chosen : { ...chosen, tab: "conversation" }, tabs: TABS };
}

export function BottomPane({ run, tabs, detail }: { run: RunChosen; tabs: readonly Tab[]; detail: RunDetail }): ReactElement {
  const mode = useLogMode();
  const first = tabs[0]!;
  return (
    <section className="lower-pane" aria-label={TAB_TITLES[run.tab]}>
      <div className="lower-head">
        <div role="tablist" aria-label="What is shown below" onKeyDown={(event) => stepTabs(event, run.tab, tabs)}>
          {tabs.map((tab) => (
            <button key={tab} id={`tab-${tab}`} type="button" role="tab" aria-selected={tab === run.tab} aria-controls="bottom-panel" tabIndex={tab === run.tab ? 0 : -1} onClick={() => chooseTab(tab, first)}>
              {TAB_TITLES[tab]}
            </button>
          ))}
        </div>
        <span className="grow" />
        {run.tab === "log" && (
          <div className="modes" role="group" aria-label="How the log is shown">
            {LOG_MODES.map((one) => (
              <button key={one} type="button" className="chip" aria-pressed={one === mode} onClick={() => choose({ log: one === "all" ? null : one }, { replace: true })}>{MODE_TITLES[one]}</button>
            ))}
          </div>
        )}
      </div>
      <div id="bottom-panel" role="tabpanel" aria-labelledby={`tab-${run.tab}`} className="lower-panel">
        {panelOf(run, detail, mode)}
      </div>
    </section>
  );
}

function panelOf(run: RunChosen, detail: RunDetail, mode: LogMode): ReactElement {
  switch (run.tab) {
    case "conversation": return isAgentRun(detail) ? <Conversation run={detail} at={run.at} /> : <p className="run-none muted">{run.id} is not a run of an agent.</p>;
    case "log": return <Log key={run.id} run={run} mode={mode} />;
    case "data": return <Data run={run} />;
    case "output": return <Output run={run} />;
    case "changes": return <Changes run={run} />;
    default: return run.tab satisfies never;
  }
}

function useLogMode(): LogMode {
  const chosen = useChosen().get("log");
  return LOG_MODES.find((one) => one === chosen) ?? "all";
}

function stepTabs(event: KeyboardEvent<HTMLDivElement>, tab: Tab, tabs: readonly Tab[]): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (by === 0) return;
  event.preventDefault();
  const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]!;
  chooseTab(next, tabs[0]);
  document.getElementById(`tab-${next}`)?.focus();
}
