/** Goals: the catalogue of steps, and in it the plan of what is wanted, with a reason on every step that is not in it. */
import "./goals.css";

import { useEffect, useState, type ReactElement } from "react";

import { useAsked } from "../api/queries";
import { api, read } from "../api/client";
import type { DrawnPicture, PlanView, StepView } from "../api/schema";
import { Picture, type BoxNote } from "../parts/picture";
import { ProblemNote } from "../parts/problem";
import { choose, useChosen } from "../shell/address";
import { useKeys } from "../shell/keys";
import { useTitle } from "../shell/questions";
import { Actions } from "./goals/actions";
import { readAsked, splitFacts, writeAsked, type Asked, type Fact } from "./goals/asked";
import { Given, Want } from "./goals/chips";
import { StepPanel } from "./goals/step-panel";

const DRAWN_WHOLE_MAX = 60;

export default function Goals(): ReactElement {
  const chosen = useChosen();
  const asked = readAsked(chosen);
  const steps = useAsked(["steps", "all"], askSteps, { refetchMs: 10_000 });
  const isAll = asked.want.length === 0 || (asked.isAll ?? (steps.data?.length ?? 0) <= DRAWN_WHOLE_MAX);
  const plan = usePlan(asked, !isAll);
  // A step that gives nothing joins the catalogue when it is first planned as a goal.
  const known = Object.keys(plan.data?.roles ?? {}).length;
  const { refetch: askStepsAgain } = steps;
  useEffect(() => {
    if (known > 0) void askStepsAgain();
  }, [known, askStepsAgain]);
  const catalogue = useAsked(["catalogue", known], (signal) => read(api.GET("/api/v1/catalogue/picture", { signal })) as Promise<DrawnPicture>, { enabled: isAll });
  const [isOutline, setOutline] = useState(false);
  const selected = chosen.get("sel");
  const change = (next: Partial<Pick<Asked, "want" | "given">>): void => choose(writeAsked({ want: asked.want, given: asked.given, ...next }));
  useTitle("Goals");
  useKeys("Goals", [
    { keys: "p", does: "Show the plan only, or everything", run: () => choose({ show: isAll ? "plan" : "all" }) },
    { keys: "o", does: "Outline or picture", run: () => setOutline(!isOutline) },
  ]);
  const picture = isAll ? catalogue.data : (plan.data?.picture ?? undefined);
  const select = (step: string | null): void => choose({ sel: step }, { replace: true });
  const toggleGoal = (step: string): void => change({ want: asked.want.includes(step) ? asked.want.filter((one) => one !== step) : [...asked.want, step] });
  const pick = (step: string, isMore: boolean): void => {
    const want = !isMore ? [step] : asked.want.includes(step) ? asked.want.filter((one) => one !== step) : [...asked.want, step];
    choose({ ...writeAsked({ want, given: asked.given }), sel: step });
  };
  if (steps.data?.length === 0) return <NoSteps />;
  return (
    <div className="goals">
      <h1 className="unseen">Goals</h1>
      <div className="asked">
        <Want want={asked.want} steps={steps.data ?? []} onChange={(want) => change({ want })} />
        <Given given={asked.given} plan={plan.data} onChange={(given) => change({ given })} />
        <span className="grow" />
        <span className="row" role="radiogroup" aria-label="What is shown">
          <label><input type="radio" name="show" checked={isAll} onChange={() => choose({ show: "all" })} /> all</label>
          <label><input type="radio" name="show" checked={!isAll} disabled={asked.want.length === 0} onChange={() => choose({ show: "plan" })} /> plan only</label>
        </span>
        <Actions asked={asked} plan={plan.data} />
      </div>
      {asked.want.length === 0 && <p className="muted">Click a step whose result you want; Shift adds another. The plan is drawn here.</p>}
      {plan.error && <ProblemNote error={plan.error} retry={() => void plan.refetch()} />}
      {catalogue.error && isAll && <ProblemNote error={catalogue.error} retry={() => void catalogue.refetch()} />}
      {plan.data && <Missing plan={plan.data} onGive={(fact) => change({ given: [...asked.given.filter(({ name }) => name !== fact.name), fact] })} />}
      <div className="goals-body">
        <section className="goals-picture" aria-label="Steps">
          {picture && (
            <Picture picture={picture} follows={0} standing={undefined} selected={selected} onSelect={select} onOpen={toggleGoal} onPick={pick}
              notes={plan.data ? notesOf(plan.data) : new Map()} isOutline={isOutline} onOutline={setOutline} />
          )}
        </section>
        <StepPanel step={selected ?? asked.want[0] ?? null} steps={steps.data ?? []} plan={plan.data} isGoal={asked.want.includes(selected ?? asked.want[0] ?? "")} onToggle={toggleGoal} onSelect={select} />
      </div>
    </div>
  );
}

async function askSteps(signal: AbortSignal): Promise<StepView[]> {
  const found: StepView[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await read(api.GET("/api/v1/steps", { params: { query: { limit: 500, cursor } }, signal }));
    found.push(...page.steps);
    if (!page.cursor || found.length > 10_000) return found;
    cursor = page.cursor;
  }
}

function usePlan(asked: Asked, isDrawn: boolean): ReturnType<typeof useAsked<PlanView>> {
  const body = { goals: asked.want, ...splitFacts(asked.given), picture: isDrawn };
  return useAsked(["plan", body], (signal) => read(api.POST("/api/v1/plan", { body, signal })) as Promise<PlanView>, { enabled: asked.want.length > 0, keepPrevious: asked.want.length > 0 });
}

const WORDS: Record<string, BoxNote["kind"]> = { goal: "goal", plan: "planned", conditional: "conditional" };

/** Return what stands on each step: the goal has a flag, the plan its colour, everything else is grey and says why. */
function notesOf(plan: PlanView): Map<string, BoxNote> {
  const lacks = (step: string): string[] => Object.keys(plan.missing).filter((fact) => plan.missing[fact]!.includes(step));
  return new Map(Object.entries(plan.roles).map(([step, { role, by }]) => {
    const missing = role in WORDS ? lacks(step) : [];
    if (missing.length > 0) return [step, { kind: "lacking", text: `lacks ${missing.join(", ")}` }];
    return [step, { kind: WORDS[role] ?? "grey", text: noteText(role, by ?? []) }];
  }));
}

export function noteText(role: string, by: readonly string[]): string {
  switch (role) {
    case "goal": return "⚑ goal";
    case "plan": return "in the plan";
    case "conditional": return "conditional";
    case "satisfied": return `satisfied: ${by.join(", ")} given`;
    case "blocked": return `blocked: ${by.join(", ")}`;
    case "missing": return `missing: ${by.join(", ")}`;
    default: return "not needed";
  }
}

function Missing({ plan, onGive }: { plan: PlanView; onGive: (fact: Fact) => void }): ReactElement | null {
  const facts = Object.entries(plan.missing_facts);
  if (facts.length === 0 && plan.findings.length === 0) return null;
  return (
    <div className="problem">
      {plan.findings.map((finding) => <span key={finding.path}><strong>{finding.path}</strong>: {finding.message}</span>)}
      {facts.map(([fact, { needed_by: by, could_give: givers, type }]) => (
        <span key={fact} className="row">
          <span><strong>{fact}</strong> ({type}) is missing: {by.join(", ")} {by.length === 1 ? "needs" : "need"} it{givers.length > 0 && `, and ${givers.join(", ")} could give it`}.</span>
          <button type="button" onClick={() => onGive({ name: fact })}>I will give it</button>
        </span>
      ))}
    </div>
  );
}

function NoSteps(): ReactElement {
  return (
    <div className="empty">
      <h1>No step gives anything yet</h1>
      <p>A step takes part in goals once it says what it gives. Weft then works out which steps lead to what you want.</p>
      <pre>{'@app.step(gives="total")\ndef price(order_id: str) -> int: ...\n\n@app.step(gives="invoice_url")\ndef render_invoice(order_id: str, total: int) -> str: ...'}</pre>
    </div>
  );
}
