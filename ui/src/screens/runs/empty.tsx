/** What is said where there are no runs. Never a blank table. */
import type { ReactElement } from "react";

import type { Me } from "../../api/schema";
import { copyText } from "../../shell/notices";
import { isEmpty, type RunFilter } from "./filter";
import { sentenceOf } from "./filter-text";
import type { WorkflowNames } from "./names";

type Props = { filter: RunFilter; me: Me | undefined; names: WorkflowNames; onClear: () => void; onStart: (workflow: string) => void };

const FIRST_PROGRAM = `# app.py
import time, weft
app = weft.App()                                   # stores everything in weft.db

@app.step
def work(what: str) -> str:
    time.sleep(1); print(what)
    return what

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    await work(f"charge {order_id}")
    await work(f"pack {order_id}")
    await ctx.sleep("5s")
    return await work(f"ship {order_id}")

if __name__ == "__main__":
    print("->", app.run(order("o-1"), id="order-o-1"))
`;

export function NoRuns({ filter, me, names, onClear, onStart }: Props): ReactElement {
  if (!isEmpty(filter)) {
    return (
      <div className="empty">
        <p>No {sentenceOf(filter)}.</p>
        <p className="muted">Asked: <code>{me?.store}</code></p>
        <button type="button" onClick={onClear}>Clear the filter</button>
      </div>
    );
  }
  const hosted = names.names.filter((name) => names.all.some((one) => one.name === name && one.hosted));
  return (
    <div className="empty">
      <p>There is no run in <code>{me?.store}</code> yet.</p>
      {hosted.length > 0
        ? <ul className="hosted">{hosted.map((name) => <li key={name}><span className="mono">{name}</span> <button type="button" onClick={() => onStart(name)}>Start</button></li>)}</ul>
        : names.isKnown && <FirstProgram />}
    </div>
  );
}

function FirstProgram(): ReactElement {
  return (
    <>
      <p>No process hosts a workflow. Save this as <code>app.py</code> and run <code>python app.py</code>:</p>
      <pre className="program" tabIndex={0} aria-label="A first program">{FIRST_PROGRAM}</pre>
      <button type="button" onClick={() => copyText(FIRST_PROGRAM)}>Copy</button>
    </>
  );
}
