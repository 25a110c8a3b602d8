/** Work that failed for good and whose failure nothing handled. It can be performed again or discarded. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries } from "../../api/queries";
import type { Letter } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { Rows } from "../../parts/rows";
import { Age } from "../../parts/time";
import { Value } from "../../parts/values";
import { runPath } from "../../shell/address";
import { Link } from "../../shell/link";
import { may, useMe } from "../../shell/session";
import { counted } from "../../shell/words";

type Doing = { verb: "requeue" | "discard"; letters: Letter[] };

export function DeadLetters(): ReactElement {
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [doing, setDoing] = useState<Doing | null>(null);
  const mayAct = may(useMe(), "operate");
  const letters = usePages(["dead-letters"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/dlq", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.letters, cursor: page.cursor };
  });
  const chosen = letters.rows?.filter((one) => marked.has(one.id)) ?? [];
  const toggle = (id: string): void => {
    const next = new Set(marked);
    if (!next.delete(id)) next.add(id);
    setMarked(next);
  };
  return (
    <>
      <Rows label="Dead letters" head={["", "run", "where", "failure", "since", ""]} error={letters.error} retry={letters.retry} more={letters.more} empty="No dead letters: nothing that failed for good waits to be performed again or discarded.">
        {letters.rows?.map((letter) => (
          <tr key={letter.id}>
            <td><input type="checkbox" aria-label={`Mark ${letter.id}`} checked={marked.has(letter.id)} onChange={() => toggle(letter.id)} /></td>
            <td className="mono"><Link to={runPath(letter.run)}>{letter.run}</Link></td>
            <td className="mono">{letter.node}</td>
            <td><details><summary>{letter.failure.type}: {letter.failure.message}</summary><Value label="Input" value={letter.input} /></details></td>
            <td><Age at={letter.since} /></td>
            <td className="acts">{mayAct && <ActOn onChoose={(verb) => setDoing({ verb, letters: [letter] })} />}</td>
          </tr>
        ))}
      </Rows>
      {mayAct && (letters.rows?.length ?? 0) > 1 && (
        <div className="row">
          <span className="num">{counted(chosen.length, "dead letter")} marked</span>
          {chosen.length < letters.rows!.length && <button type="button" className="plain" onClick={() => setMarked(new Set(letters.rows!.map(({ id }) => id)))}>Mark all that are shown</button>}
          {chosen.length > 0 && <ActOn onChoose={(verb) => setDoing({ verb, letters: chosen })} />}
        </div>
      )}
      {doing && <ActDialog {...doing} onClose={() => setDoing(null)} onDone={() => setMarked(new Set())} />}
    </>
  );
}

function ActOn({ onChoose }: { onChoose: (verb: Doing["verb"]) => void }): ReactElement {
  return (
    <>
      <button type="button" onClick={() => onChoose("requeue")}>Requeue</button>
      <button type="button" className="danger" onClick={() => onChoose("discard")}>Discard</button>
    </>
  );
}

function ActDialog({ verb, letters, onClose, onDone }: Doing & { onClose: () => void; onDone: () => void }): ReactElement {
  const act = async (): Promise<void> => {
    try {
      for (const { id } of letters) await read(api.POST(`/api/v1/dlq/{id}/${verb}`, { params: { path: { id } } }));
    } finally {
      await queries.invalidateQueries({ queryKey: ["dead-letters"] });
    }
    onDone();
  };
  const count = counted(letters.length, "dead letter");
  return (
    <ActionDialog title={verb === "requeue" ? `Perform ${count} again?` : `Discard ${count}?`} verb={verb === "requeue" ? "Requeue" : "Discard"} isDanger={verb === "discard"}
      isReasonAsked={false} said={verb === "requeue" ? "Requeued" : "Discarded"} onClose={onClose} act={act}
      command={() => letters.map(({ id }) => weftCommand("dlq", [verb, id])).join("\n")}>
      <ul>{letters.slice(0, 10).map((letter) => <li key={letter.id}>{letter.run} {letter.node}: {letter.failure.message}</li>)}</ul>
      {letters.length > 10 && <p>and {letters.length - 10} more</p>}
    </ActionDialog>
  );
}
