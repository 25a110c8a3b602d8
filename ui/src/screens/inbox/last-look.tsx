/** The last look before an answer is sent: what is decided, and by whom. Enter sends it. */
import { useState, type FormEvent, type ReactElement } from "react";

import type { ListedApproval } from "../../api/schema";
import { weftCommand } from "../../parts/command";
import { CommandLine, Dialog } from "../../parts/dialog";
import { Value } from "../../parts/values";
import { useMe } from "../../shell/session";
import { changeSettings, useSettings } from "../../shell/settings";

type Props = {
  question: ListedApproval; isApproved: boolean; reason: string; form: unknown; isLast: boolean; onSend: () => void; onBack: () => void;
};

export function LastLook({ question, isApproved, reason, form, onSend, onBack }: Props): ReactElement {
  const me = useMe();
  const { name } = useSettings();
  const [typed, setTyped] = useState(name);
  const isNameAsked = me?.groups === null;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isNameAsked) changeSettings({ name: typed.trim() });
    onSend();
  };
  const command = weftCommand("decide", [question.id, isApproved ? "approve" : "reject"], [
    ["--reason", reason],
    ["--form", isApproved && form !== undefined ? JSON.stringify(form) : ""],
    ["--by", isNameAsked ? typed : ""],
  ]);
  return (
    <Dialog title={isApproved ? "Approve?" : "Reject?"} onClose={onBack}>
      <form onSubmit={submit}>
        <p><strong><bdi>{question.title || question.place}</bdi></strong></p>
        {isApproved && form !== undefined && <Value label="With" value={form} />}
        {reason && <p>Reason: <bdi>{reason}</bdi></p>}
        {isNameAsked ? (
          <label className="column">Your name
            <input data-first={name === "" || undefined} value={typed} onChange={(event) => setTyped(event.target.value)} required autoComplete="username" />
          </label>
        ) : <p>As {me?.name}</p>}
        <CommandLine command={command} />
        <div className="buttons">
          <button type="button" onClick={onBack}>Back</button>
          <button data-first className={isApproved ? "primary" : "danger"}>{isApproved ? "✓ Approve" : "✗ Reject"}</button>
        </div>
      </form>
    </Dialog>
  );
}
