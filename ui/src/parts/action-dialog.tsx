/** A dialog before a command: what it will do, a reason, and the same as a line for the terminal. */
import { useState, type FormEvent, type ReactElement, type ReactNode } from "react";

import { sayUrgently, toast } from "../shell/notices";
import { CommandLine, Dialog } from "./dialog";
import { ProblemNote } from "./problem";

type Props = {
  title: string;
  /** The word on the button. */
  verb: string;
  children?: ReactNode;
  isDanger?: boolean;
  isReasonAsked?: boolean;
  /** Whether it can be done: false until a dry run has said so. */
  isReady?: boolean;
  command: (reason: string) => string;
  act: (reason: string) => Promise<unknown>;
  /** What is said when it is done. */
  said: string;
  onClose: () => void;
};

export function ActionDialog({ title, verb, children, isDanger = false, isReasonAsked = true, isReady = true, command, act, said, onClose }: Props): ReactElement {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setSending(true);
    act(reason).then(
      () => {
        toast(said);
        onClose();
      },
      (problem: unknown) => {
        setError(problem);
        setSending(false);
        sayUrgently(problem instanceof Error ? problem.message : "It was not done.");
      },
    );
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {isReasonAsked && (
          <label className="column">Reason
            <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
          </label>
        )}
        {error !== null && <ProblemNote error={error} />}
        <CommandLine command={command(reason)} />
        <div className="buttons">
          <button type="button" data-first onClick={onClose}>Back</button>
          <button className={isDanger ? "danger" : "primary"} disabled={isSending || !isReady}>{verb}</button>
        </div>
      </form>
    </Dialog>
  );
}
