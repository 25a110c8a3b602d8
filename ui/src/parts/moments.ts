/** Dates and times of forms: as ISO 8601 text, and as what a browser's field holds beside a zone. Pure. */

export type MomentParts = { local: string; zone: string };

const MOMENT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|z|[+-]\d\d:?\d\d|)$/;
const DATE = /^\d{4}-\d\d-\d\d$/;

/** Take a moment apart, or return null if a browser's field cannot hold it. */
export function splitMoment(text: string, withTime: boolean): MomentParts | null {
  if (text === "") return { local: "", zone: "" };
  if (!withTime) return DATE.test(text) ? { local: text, zone: "" } : null;
  const found = MOMENT.exec(text);
  if (found === null) return null;
  return { local: `${found[1]}T${found[2]}`, zone: found[3]!.toUpperCase() };
}

/** Put a moment together. Seconds are always written, as JSON Schema's date-time asks for them. */
export function joinMoment(local: string, zone: string): string {
  return (/T\d\d:\d\d$/.test(local) ? local + ":00" : local) + zone;
}

/** Return this browser's offset from UTC at a local time: "+01:00". */
export function localZone(local: string): string {
  const at = local === "" ? new Date() : new Date(local);
  const minutes = Number.isNaN(at.getTime()) ? 0 : -at.getTimezoneOffset();
  const two = (value: number): string => String(value).padStart(2, "0");
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.trunc(size / 60))}:${two(size % 60)}`;
}
