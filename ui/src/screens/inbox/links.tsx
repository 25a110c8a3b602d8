/** A link with which one person may answer one question without an account. */
import { useState, type FormEvent, type ReactElement } from "react";

import { api, read } from "../../api/client";
import type { ListedApproval, LinkPair } from "../../api/schema";
import { Dialog } from "../../parts/dialog";
import { ProblemNote } from "../../parts/problem";
import { copyText } from "../../shell/notices";

export function PersonLinks({ question }: { question: ListedApproval }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="plain" onClick={() => setOpen(true)}>Link for a person</button>
      {isOpen && <LinksDialog question={question} onClose={() => setOpen(false)} />}
    </>
  );
}

function LinksDialog({ question, onClose }: { question: ListedApproval; onClose: () => void }): ReactElement {
  const [links, setLinks] = useState<LinkPair | null>(null);
  const [error, setError] = useState<unknown>(null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const by = String(new FormData(event.currentTarget).get("by") ?? "").trim();
    const asked = api.POST("/api/v1/approvals/{id}/links", { params: { path: { id: question.id } }, body: { by } });
    read(asked).then(setLinks, setError);
  };
  return (
    <Dialog title="Link for a person" onClose={onClose}>
      <p>Whoever has the link can answer this one question in that person's name.</p>
      {links === null ? (
        <form onSubmit={submit}>
          <label className="column">Name of the person <input name="by" required autoFocus /></label>
          {error !== null && <ProblemNote error={error} />}
          <div className="buttons"><button type="button" onClick={onClose}>Back</button><button className="primary">Make the link</button></div>
        </form>
      ) : (
        <>
          <pre>{whole(links.approve)}</pre>
          <div className="buttons">
            <button type="button" onClick={onClose}>Close</button>
            <button type="button" className="primary" onClick={() => copyText(whole(links.approve))}>Copy the link</button>
          </div>
        </>
      )}
    </Dialog>
  );
}

/** Return the whole address of a link. A server that was not told its address knows only the end of it. */
function whole(link: string): string {
  return /^https?:/.test(link) ? link : new URL(link.slice(link.lastIndexOf("decide/")), document.baseURI).href;
}
