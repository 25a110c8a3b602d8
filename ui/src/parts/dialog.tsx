/** A dialog. Focus goes in, to what is marked with `data-first`, and comes back; Escape closes it. */
import { useEffect, useId, useRef, type ReactElement, type ReactNode } from "react";

import { copyText } from "../shell/notices";

type Props = { title: string; onClose: () => void; children: ReactNode; isWide?: boolean; isAtTop?: boolean };

export function Dialog({ title, onClose, children, isWide = false, isAtTop = false }: Props): ReactElement {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      className={[isWide && "wide", isAtTop && "at-top"].filter(Boolean).join(" ") || undefined}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <div className="column">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** A line for the terminal that does the same as the dialog. */
export function CommandLine({ command }: { command: string }): ReactElement {
  return (
    <details>
      <summary>Copy as command</summary>
      <div className="row">
        <pre className="command grow">{command}</pre>
        <button type="button" onClick={() => copyText(command)}>Copy</button>
      </div>
    </details>
  );
}
