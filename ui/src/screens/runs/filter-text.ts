/** A filter as text: `status:failed workflow:order customer=7 o-1`. Pure, and the same both ways. */
import { added, NO_FILTER, SINGLE_KEYS, whyNot, type ReadFilter, type RunFilter } from "./filter";

/** One word: as it was typed, and without its quotes. A word that begins with a quote is only itself. */
type Word = { raw: string; text: string; isQuoted: boolean };

const KEYS: readonly (keyof RunFilter)[] = ["status", "where", ...SINGLE_KEYS];
const AS_TYPED: Partial<Record<string, keyof RunFilter>> = { id: "q", attribute: "where" };

/** Read what was typed. */
export function parseFilter(typed: string): ReadFilter {
  let read: ReadFilter = { filter: NO_FILTER, findings: [] };
  for (const word of words(typed)) read = withWord(read, word);
  return read;
}

function withWord(read: ReadFilter, word: Word): ReadFilter {
  if (word.isQuoted) return added(read, "q", word.text);
  const colon = word.text.indexOf(":");
  const key = colon > 0 ? keyOf(word.text.slice(0, colon)) : undefined;
  if (key !== undefined) {
    const value = word.text.slice(colon + 1);
    if (value === "") return { ...read, findings: [...read.findings, { what: word.text, why: "a value is missing" }] };
    return (key === "status" ? value.split(",") : [value]).reduce((sofar, one) => added(sofar, key, one), read);
  }
  // Quotes around the value of an attribute belong to it: "7" is a text, 7 a number.
  if (word.raw.indexOf("=") > 0) return added(read, "where", word.raw);
  return added(read, "q", word.text);
}

function keyOf(name: string): keyof RunFilter | undefined {
  return KEYS.find((key) => key === name) ?? AS_TYPED[name];
}

/** Split at spaces outside of quotes. Within quotes a backslash takes the next letter as it is. */
function words(typed: string): Word[] {
  const found: Word[] = [];
  let word: Word | null = null;
  let isInside = false;
  for (let at = 0; at < typed.length; at++) {
    const letter = typed[at]!;
    if (!isInside && /\s/.test(letter)) {
      if (word !== null) found.push(word);
      word = null;
      continue;
    }
    word ??= { raw: "", text: "", isQuoted: letter === '"' };
    word.raw += letter;
    if (letter === '"') isInside = !isInside;
    else if (isInside && letter === "\\" && at + 1 < typed.length) {
      at++;
      word.raw += typed[at]!;
      word.text += typed[at]!;
    } else word.text += letter;
  }
  if (word !== null) found.push(word);
  return found;
}

/** Write a filter as it would be typed. */
export function filterText(filter: RunFilter): string {
  const parts = filter.status.map((status) => `status:${status}`);
  for (const key of SINGLE_KEYS) if (key !== "q" && filter[key] !== "") parts.push(`${key}:${quoted(filter[key])}`);
  for (const pair of filter.where) parts.push(reads(pair, { ...NO_FILTER, where: [pair] }) ? pair : `where:${quoted(pair)}`);
  if (filter.q !== "") parts.push(reads(filter.q, { ...NO_FILTER, q: filter.q }) ? filter.q : always(filter.q));
  return parts.join(" ");
}

/** Whether a word is read as it is meant, also with another word after it. */
function reads(text: string, as: RunFilter): boolean {
  const { filter, findings } = parseFilter(text + " status:failed");
  return findings.length === 0 && JSON.stringify(filter) === JSON.stringify({ ...as, status: ["failed"] });
}

function quoted(text: string): string {
  return /[\s"\\]/.test(text) ? always(text) : text;
}

function always(text: string): string {
  return '"' + text.replaceAll("\\", "\\\\").replaceAll('"', '\\"') + '"';
}

const PLURAL: Record<string, string> = { person: "a person", message: "a message", time: "a time", step: "a step", child: "a child run" };

/** Return "failed run of order since 24h": what there is none of. */
export function sentenceOf(filter: RunFilter): string {
  const states = filter.status.map((status) => status.replace("_", " "));
  const head = states.length > 1 ? `${states.slice(0, -1).join(", ")} or ${states.at(-1)} run` : `${states[0] ? states[0] + " " : ""}run`;
  const parts = [head];
  if (filter.style) parts.push(`in style ${filter.style}`);
  if (filter.workflow) parts.push(`of ${filter.workflow}`);
  if (filter.version) parts.push(`in version ${filter.version}`);
  if (filter.where.length > 0) parts.push(`with ${filter.where.join(" and ")}`);
  if (filter.parent) parts.push(`started by ${filter.parent}`);
  if (filter.waits) parts.push(`that waits for ${PLURAL[filter.waits] ?? filter.waits}`);
  if (filter.unchanged) parts.push(`unchanged for ${filter.unchanged}`);
  if (filter.q) parts.push(`that begins with “${filter.q}”`);
  if (filter.since) parts.push(whyNot("unchanged", filter.since) === null ? `in the last ${filter.since}` : `since ${filter.since}`);
  if (filter.until) parts.push(`until ${filter.until}${whyNot("unchanged", filter.until) === null ? " ago" : ""}`);
  return parts.join(" ");
}
