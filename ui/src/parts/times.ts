/** Times as text. Pure: the moment that counts as now is an argument. */

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** Return a duration in at most two units: "2 m 14 s" is written "2 min 14 s". */
export function durationText(ms: number): string {
  if (ms < 0) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(ms < 10_000 ? 1 : 0)} s`;
  for (let at = 0; at < UNITS.length - 1; at++) {
    const [size, name] = UNITS[at]!;
    if (ms < size) continue;
    const [next, nextName] = UNITS[at + 1]!;
    const rest = Math.floor((ms % size) / next);
    return `${Math.floor(ms / size)} ${name}` + (rest > 0 ? ` ${rest} ${nextName}` : "");
  }
  return `${Math.floor(ms / 1000)} s`;
}

/** Return an age in one unit: "3 s", "12 min". */
export function ageText(ms: number): string {
  for (const [size, name] of UNITS) if (ms >= size) return `${Math.floor(ms / size)} ${name}`;
  return "0 s";
}

export function agoText(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (ms < -999) return `in ${ageText(-ms)}`;
  return ms < 1000 ? "now" : `${ageText(ms)} ago`;
}

/** Return the exact moment, to the millisecond, in the local zone or in UTC. */
export function momentText(atMs: number, zone: "local" | "utc", withDate = true): string {
  const at = new Date(atMs);
  const [y, mo, d, h, mi, s, ms] =
    zone === "utc"
      ? [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds(), at.getUTCMilliseconds()]
      : [at.getFullYear(), at.getMonth(), at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds(), at.getMilliseconds()];
  const two = (value: number): string => String(value).padStart(2, "0");
  const time = `${two(h)}:${two(mi)}:${two(s)}.${String(ms).padStart(3, "0")}`;
  return withDate ? `${y}-${two(mo + 1)}-${two(d)} ${time}` : time;
}

/** Return the name of the zone that is shown: "UTC", "UTC+1", "UTC-3:30". */
export function zoneText(zone: "local" | "utc", atMs: number): string {
  if (zone === "utc") return "UTC";
  const minutes = -new Date(atMs).getTimezoneOffset();
  if (minutes === 0) return "UTC+0";
  const [hours, rest] = [Math.trunc(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest ? ":" + String(rest).padStart(2, "0") : ""}`;
}
