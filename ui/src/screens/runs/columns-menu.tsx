/** Which attributes are columns. */
import { useId, type ReactElement } from "react";

type Props = { columns: string[]; names: string[]; onChange: (columns: string[]) => void };

export function ColumnsMenu({ columns, names, onChange }: Props): ReactElement {
  const id = useId();
  const all = [...new Set([...columns, ...names])];
  return (
    <>
      <button type="button" className="plain anchor-columns" popoverTarget={id}>Columns ▾</button>
      <div id={id} popover="auto" className="popup at-columns">
        {all.length === 0 && <p className="muted">These runs have no attributes. Code sets them with <code>ctx.set(customer=7)</code>, a start with <code>attributes</code>.</p>}
        {all.map((name) => (
          <label key={name} className="row nowrap">
            <input type="checkbox" checked={columns.includes(name)} onChange={(event) => onChange(event.target.checked ? [...columns, name] : columns.filter((one) => one !== name))} />
            <span className="cut mono"><bdi>{name}</bdi></span>
          </label>
        ))}
      </div>
    </>
  );
}
