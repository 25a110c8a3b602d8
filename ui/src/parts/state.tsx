/** A state is colour, sign and word; never colour alone. */
import type { ReactElement } from "react";

import { MARK_SIGNS, STATUS_MARKS, statusWord, type Mark, type RunStatus } from "../shell/words";

export function Sign({ mark }: { mark: Mark }): ReactElement {
  return (
    <span className={`sign mark-${mark}`} aria-hidden="true">
      {MARK_SIGNS[mark]}
    </span>
  );
}

export function Status({ status }: { status: RunStatus }): ReactElement {
  const mark = STATUS_MARKS[status] ?? "idle";
  return (
    <span className={`status mark-${mark}`}>
      <Sign mark={mark} /> {statusWord(status)}
    </span>
  );
}

export function MarkWord({ mark, word }: { mark: Mark; word?: string }): ReactElement {
  return (
    <span className={`status mark-${mark}`}>
      <Sign mark={mark} /> {word ?? mark}
    </span>
  );
}
