/** The bar that is always in sight: what to do with the marked runs, or with all that match. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { BulkView } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { ProblemNote } from "../../parts/problem";
import { navigate, pathTo, runPath } from "../../shell/address";
import { serverNow } from "../../shell/clock";
import { settings } from "../../shell/settings";
import { counted } from "../../shell/words";
import { bulkCommand, bulkFilterOf, type BulkFilterBody } from "./bulk-text";
import type { Count } from "./counts";
import { isEmpty, type RunFilter } from "./filter";

const VERBS = [
  { verb: "cancel", title: "Cancel", isDanger: true },
  { verb: "pause", title: "Pause", isDanger: false },
  { verb: "resume", title: "Resume", isDanger: false },
  { verb: "retry", title: "Retry", isDanger: false },
] as const;

type Verb = (typeof VERBS)[number];
type Props = { marked: ReadonlySet<string>; filter: RunFilter; matching: Pick<Count, "count" | "more"> | undefined; onClear: () => void; mayOperate: boolean };

export function BulkBar({ marked, filter, matching, onClear, mayOperate }: Props): ReactElement | null {
  const [isAll, setAll] = useState(false);
  const [asked, setAsked] = useState<Verb | null>(null);
  if (!mayOperate || (matching?.count === 0 && marked.size === 0)) return null;
  const ids = [...marked];
  const number = matching ? `all ${matching.count.toLocaleString("en")}${matching.more ? " or more" : ""} that match` : "all that match";
  // The server refuses a bulk for all runs: it would have no way back.
  const isAllOff = isEmpty(filter);
  const isAllChosen = isAll && !isAllOff;
  const isOff = ids.length === 0 && !isAllChosen;
  return (
    <section className="bulk-bar" aria-label="What to do with many runs">
      <span className="num">{ids.length > 0 ? `${ids.length.toLocaleString("en")} marked` : <span className="muted">none marked</span>}</span>
      <span className="muted">· or</span>
      {isAllOff
        ? <span className="muted">filter the list to choose all that match</span>
        : <button type="button" className="chip" aria-pressed={isAll} onClick={() => setAll(!isAll)}>{number}</button>}
      <span className="grow" />
      {VERBS.map((one) => (
        <button key={one.verb} type="button" data-verb={one.verb} className={one.isDanger ? "danger" : undefined} disabled={isOff} onClick={() => setAsked(one)}>{one.title}</button>
      ))}
      <button type="button" disabled={ids.length !== 2} title="Mark two runs to compare them" onClick={() => navigate(pathTo("runs", ids[0]!, "diff", ids[1]!))}>Compare</button>
      <button type="button" className="plain" disabled={isOff} onClick={() => { setAll(false); onClear(); }}>Clear <kbd>Esc</kbd></button>
      {asked && <BulkDialog key={asked.verb} verb={asked} ids={isAllChosen ? null : ids} filter={filter} onClose={() => setAsked(null)} />}
    </section>
  );
}

function BulkDialog({ verb, ids, filter, onClose }: { verb: Verb; ids: string[] | null; filter: RunFilter; onClose: () => void }): ReactElement {
  // The dry run is of this moment: it is not asked again while somebody reads it.
  const [target] = useState<{ ids?: string[]; filter?: BulkFilterBody }>(() => (ids !== null ? { ids } : { filter: bulkFilterOf(filter, serverNow()) }));
  const [started] = useState(() => Date.now());
  const dry = useAsked(["bulk", verb.verb, started], () => read(api.POST("/api/v1/bulk", { body: { verb: verb.verb, ...target, dry_run: true } })));
  const plan = dry.data;
  const act = async (reason: string): Promise<void> => {
    if (!plan) return;
    const body = { verb: verb.verb, ids: plan.ids, uids: plan.uids, options: plan.options, expects: plan.expects, reason, by: settings().name };
    const done = await read(api.POST("/api/v1/bulk", { body: body }));
    if (done.run) navigate(runPath(done.run));
  };
  const number = plan ? counted(plan.would_apply, "run") : ids !== null ? counted(ids.length, "run") : "all that match";
  return (
    <ActionDialog
      title={`${verb.title} ${number}`} verb={verb.title} isDanger={verb.isDanger} isReady={plan !== undefined && plan.would_apply > 0} act={act} onClose={onClose}
      said={`${verb.title} has begun, as a job`} command={(reason) => bulkCommand(verb.verb, ids, filter, reason)}
    >
      {dry.error !== null ? <ProblemNote error={dry.error} retry={() => void dry.refetch()} /> : plan ? <Plan plan={plan} verb={verb.verb} /> : <p className="muted" role="status">Counting what would happen…</p>}
    </ActionDialog>
  );
}

const DONE: Record<Verb["verb"], string> = { cancel: "would be cancelled", pause: "would be paused", resume: "would go on", retry: "would be retried" };

function Plan({ plan, verb }: { plan: BulkView; verb: Verb["verb"] }): ReactElement {
  return (
    <div className="column" role="status">
      <p>{counted(plan.matched, "run")} matched; <strong>{plan.would_apply.toLocaleString("en")} {DONE[verb]}</strong>{plan.unchanged > 0 && `; ${plan.unchanged.toLocaleString("en")} are so already`}.</p>
      {plan.refused.length > 0 && (
        <ul className="refused">
          {plan.refused.map((group) => (
            <li key={group.code + group.status}>{counted(group.count, "run")} cannot be: {group.message} <span className="muted mono">{group.example}</span></li>
          ))}
        </ul>
      )}
      {plan.would_apply > 0 && <p className="muted">It is done by a job: a run of <code>weft.bulk</code> with a screen and a log of its own, which survives a crash.</p>}
    </div>
  );
}

