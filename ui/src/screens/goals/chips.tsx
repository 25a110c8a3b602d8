/** What is wanted and what is given, as chips that can be taken away and fields that add one. */
import { useState, type FormEvent, type ReactElement } from "react";

import type { PlanView, StepView } from "../../api/schema";
import { typedFact, type Fact } from "./asked";

export function Want({ want, steps, onChange }: { want: string[]; steps: StepView[]; onChange: (want: string[]) => void }): ReactElement {
  const [text, setText] = useState("");
  const add = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() && !want.includes(text.trim())) onChange([...want, text.trim()]);
    setText("");
  };
  return (
    <form className="chips" onSubmit={add}>
      <strong>Want</strong>
      {want.map((step) => <Chip key={step} label={step} onRemove={() => onChange(want.filter((one) => one !== step))} />)}
      <input list="goal-steps" aria-label="Add a goal" placeholder="a step" value={text} onChange={(event) => setText(event.target.value)} />
      <datalist id="goal-steps">{steps.map(({ id }) => <option key={id} value={id} />)}</datalist>
      <button>Add</button>
    </form>
  );
}

export function Given({ given, plan, onChange }: { given: Fact[]; plan: PlanView | undefined; onChange: (given: Fact[]) => void }): ReactElement {
  const [text, setText] = useState("");
  const add = (event: FormEvent): void => {
    event.preventDefault();
    const fact = typedFact(text);
    if (fact) onChange([...given.filter(({ name }) => name !== fact.name), fact]);
    setText("");
  };
  return (
    <form className="chips" onSubmit={add}>
      <strong>Given</strong>
      {given.map((fact) => (
        <Chip key={fact.name} label={fact.value === undefined ? fact.name : `${fact.name} ${JSON.stringify(fact.value)}`} about={plan?.types[fact.name]} onRemove={() => onChange(given.filter((one) => one !== fact))} />
      ))}
      <input list="missing-facts" aria-label="Add a fact, with a value or without" placeholder="name or name=value" value={text} onChange={(event) => setText(event.target.value)} />
      <datalist id="missing-facts">{Object.keys(plan?.missing_facts ?? {}).map((name) => <option key={name} value={name} />)}</datalist>
      <button>Add</button>
    </form>
  );
}

function Chip({ label, about, onRemove }: { label: string; about?: string | undefined; onRemove: () => void }): ReactElement {
  return (
    <span className="chip" title={about}>
      <span className="cut">{label.slice(0, 200)}</span>
      <button type="button" aria-label={`Take ${label.slice(0, 200)} away`} onClick={onRemove}>✕</button>
    </span>
  );
}
