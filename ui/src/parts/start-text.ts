/** A start as Python, as a line for the terminal and as curl. Pure. */
import { shellWord, weftCommand } from "./command";

export type Start = {
  workflow: string;
  /** Only one of the two is given. */
  tag: string;
  version: string;
  input: Record<string, unknown>;
  id: string;
  attributes: Record<string, unknown>;
  delay: number;
};

/** Return the name that a start is asked with: a tag belongs to the name. */
function nameOf(start: Start): string {
  return start.tag ? `${start.workflow}:${start.tag}` : start.workflow;
}

export function startBody(start: Start): Record<string, unknown> {
  return {
    workflow: nameOf(start),
    ...(start.version ? { version: start.version } : {}),
    input: start.input,
    ...(start.id ? { id: start.id } : {}),
    ...(Object.keys(start.attributes).length > 0 ? { attributes: start.attributes } : {}),
    ...(start.delay > 0 ? { delay: start.delay } : {}),
  };
}

export function startAsPython(start: Start, url: string): string {
  const named: string[] = [];
  if (start.id) named.push(`id=${pythonText(start.id)}`);
  if (start.version) named.push(`version=${pythonText(start.version)}`);
  if (Object.keys(start.attributes).length > 0) named.push(`attributes=${pythonValue(start.attributes)}`);
  if (start.delay > 0) named.push(`delay=${start.delay}`);
  const given = [pythonText(nameOf(start)), pythonValue(start.input), ...named].join(", ");
  return `async with weft.Client(${pythonText(url)}) as client:\n    run = await client.start(${given})`;
}

/** Return the command. What it cannot say is said in a comment above it. */
export function startAsCommand(start: Start): string {
  const name = start.version ? `${start.workflow}@${start.version}` : nameOf(start);
  const words = Object.entries(start.input).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const command = weftCommand("start", [name, ...words], [["--id", start.id]]);
  const isMore = start.delay > 0 || Object.keys(start.attributes).length > 0;
  return isMore ? `# without attributes and delay: the command does not know them\n${command}` : command;
}

export function startAsCurl(start: Start, url: string): string {
  return `curl -H 'content-type: application/json' ${shellWord(url + "/api/v1/runs")} \\\n  -d ${shellWord(JSON.stringify(startBody(start)))}`;
}

function pythonText(text: string): string {
  // What JSON escapes, Python reads; beyond it only half pairs differ, which JSON writes as \ud800.
  return JSON.stringify(text);
}

/** Write a JSON value as Python does. */
export function pythonValue(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return pythonText(value);
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, one]) => `${pythonText(name)}: ${pythonValue(one)}`).join(", ")}}`;
}
