/** A small line of numbers over time. The last number stands beside it as text. */
import type { ReactElement } from "react";

const WIDTH = 90;
const HEIGHT = 18;

type Props = { label: string; values: readonly (number | null)[]; unit: string };

export function Sparkline({ label, values, unit }: Props): ReactElement {
  const known = values.filter((value) => value !== null);
  const last = known.at(-1);
  return (
    <span className="row" role="img" aria-label={`${label}: ${last === undefined ? "nothing yet" : `${short(last)}${unit} now, at most ${short(Math.max(...known))}${unit} in the last hour`}`}>
      <span className="muted">{label}</span>
      <svg width={WIDTH} height={HEIGHT} aria-hidden="true"><path d={known.length > 0 ? pathOf(values) : ""} fill="none" stroke="var(--accent)" strokeWidth="1.5" strokeLinecap="round" /></svg>
      <span className="num">{last === undefined ? "–" : short(last) + unit}</span>
    </span>
  );
}

export function pathOf(values: readonly (number | null)[]): string {
  const top = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const step = WIDTH / Math.max(1, values.length - 1);
  let path = "";
  values.forEach((value, at) => {
    if (value === null) return;
    const isAfterGap = path === "" || values[at - 1] === null;
    path += `${isAfterGap ? "M" : "L"}${(at * step).toFixed(1)} ${(HEIGHT - 1 - (value / top) * (HEIGHT - 2)).toFixed(1)}${isAfterGap ? "h.01" : ""}`;
  });
  return path;
}

function short(value: number): string {
  return value >= 10 || value === Math.round(value) ? String(Math.round(value)) : value.toFixed(1);
}
