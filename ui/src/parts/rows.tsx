/** A plain table with a name, its rows, and what is said when there are none. */
import { useEffect, useRef, type ReactElement, type ReactNode } from "react";

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
  const table = useRef<HTMLTableElement>(null);
  // On a narrow screen a row is a block, and each of its cells says what it is.
  useEffect(() => {
    for (const row of table.current?.tBodies[0]?.rows ?? []) [...row.cells].forEach((cell, at) => (cell.dataset.title = head[at] ?? ""));
  });
  return (
    <>
      {error !== null && error !== undefined && <ProblemNote error={error} retry={retry} />}
      {children !== undefined && children.length === 0 && <div className="muted">{empty}</div>}
      {children !== undefined && children.length > 0 && (
        <div className="scroll" tabIndex={0} role="group" aria-label={`${label}, scrolls sideways`}>
          <table ref={table} className="rows" aria-label={label} aria-rowcount={children.length + 1}>
            <thead><tr>{head.map((title, at) => <th key={at} scope="col">{title || <span className="unseen">Actions</span>}</th>)}</tr></thead>
            <tbody>{children}</tbody>
          </table>
        </div>
      )}
      {more && <span><button type="button" onClick={more}>Show more</button></span>}
    </>
  );
}
