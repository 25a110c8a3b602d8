/** The selected step: what it needs and who gives it, what it gives, its health, and why it is not in the plan. */
import type { ReactElement } from "react";

import type { PlanView, StepView } from "../../api/schema";
import { MarkWord } from "../../parts/state";
import { noteText } from "../goals";

type Props = {
  step: string | null; steps: StepView[]; plan: PlanView | undefined; isGoal: boolean;
  onToggle: (step: string) => void; onSelect: (step: string) => void;
};
type Definition = { needs?: Record<string, { role?: string; type?: unknown }>; gives?: Record<string, unknown>; when?: { source?: string } };

export function StepPanel({ step, steps, plan, isGoal, onToggle, onSelect }: Props): ReactElement {
  const found = steps.find(({ id }) => id === step);
  if (!found) return <aside className="step-panel" aria-label="Step"><p className="muted">Select a step to see what it needs and gives.</p></aside>;
  const definition = found.definition as Definition;
  const role = plan?.roles[found.id];
  const givers = (fact: string): StepView[] => steps.filter((one) => fact in ((one.definition as Definition).gives ?? {}));
  return (
    <aside className="step-panel" aria-label="Step">
      <h2 className="mono">{found.id}</h2>
      {role && <p>{role.role === "plan" ? "in the plan" : noteText(role.role, role.by ?? [])}</p>}
      <span><button type="button" onClick={() => onToggle(found.id)}>{isGoal ? "Not a goal any more" : "Make it a goal"}</button></span>
      <h3>Needs</h3>
      <ul>
        {Object.entries(definition.needs ?? {}).map(([fact, need]) => (
          <li key={fact}><code>{fact}</code> {need.role !== "required" && need.role} {givers(fact).map(({ id }) => <button key={id} type="button" className="plain" onClick={() => onSelect(id)}>{id}</button>)}</li>
        ))}
        {Object.keys(definition.needs ?? {}).length === 0 && <li className="muted">nothing</li>}
      </ul>
      <h3>Gives</h3>
      <ul>
        {Object.keys(definition.gives ?? {}).map((fact) => <li key={fact}><code>{fact}</code></li>)}
        {Object.keys(definition.gives ?? {}).length === 0 && <li className="muted">nothing</li>}
      </ul>
      {definition.when?.source && <p>only when <code>{definition.when.source}</code></p>}
      <p><MarkWord mark={found.error ? "failed" : found.health === "healthy" ? "done" : "idle"} word={`health: ${found.health}`} /> {found.error}</p>
      <p className="muted">{found.stored ? "from the store" : "from a program"}</p>
    </aside>
  );
}
