/** A plain table with a name, its rows, and what is said when there are none. */
import type { ReactElement, ReactNode } from "react";

import { ProblemNote } from "./problem";

type Props = {
  label: string;
  head: string[];
  children: ReactNode[] | undefined;
  empty: ReactNode;
  error?: unknown;
  retry?: () => void;
  more?: (() => void) | undefined;
};

export function Rows({ label, head, children, empty, error, retry, more }: Props): ReactElement {
  return (
    <>
      {error !== null && error !== undefined && <ProblemNote error={error} retry={retry} />}
      {children !== undefined && children.length === 0 && <div className="muted">{empty}</div>}
      {children !== undefined && children.length > 0 && (
        <div className="scroll" tabIndex={0} role="group" aria-label={`${label}, scrolls sideways`}>
          <table aria-label={label} aria-rowcount={children.length + 1}>
            <thead><tr>{head.map((title, at) => <th key={at} scope="col">{title || <span className="unseen">Actions</span>}</th>)}</tr></thead>
            <tbody>{children}</tbody>
          </table>
        </div>
      )}
      {more && <span><button type="button" onClick={more}>Show more</button></span>}
    </>
  );
}
