/** Texts of values. Pure. */

const WHOLE_BYTES = 256 * 1024;
const HEAD_CHARS = 64 * 1024;
const PREVIEW_CHARS = 80;

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Return the JSON of a value, or its head if it is large. */
export function headOf(value: unknown): { text: string; bytes: number; isCut: boolean } {
  const text = JSON.stringify(value, null, 2) ?? "null";
  const isCut = text.length > WHOLE_BYTES;
  return { text: isCut ? text.slice(0, HEAD_CHARS) : text, bytes: text.length, isCut };
}

/** Return one line that says what is inside. */
export function previewOf(value: object): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  const names = Object.keys(value).join(", ");
  return "{ " + (names.length > PREVIEW_CHARS ? names.slice(0, PREVIEW_CHARS) + "…" : names) + " }";
}

/** Return the address if the whole text is one http(s) link. */
export function linkIn(text: string): string | null {
  if (!/^https?:\/\/\S{1,2000}$/.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}
