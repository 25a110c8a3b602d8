/** What a bulk is asked for, and the same as a line for the terminal. Pure. */
import { weftCommand } from "../../parts/command";
import { askedOf, type Asked, type RunFilter } from "./filter";

export type BulkFilterBody = Omit<Asked, "where"> & { where?: Record<string, unknown> };

/** Return the filter of a bulk: that of the list, with attributes as an object. */
export function bulkFilterOf(filter: RunFilter, nowMs: number): BulkFilterBody {
  const { where, ...asked } = askedOf(filter, nowMs);
  return where ? { ...asked, where: Object.fromEntries(where.map(pairOf)) } : asked;
}

/** Read `name=value` as the server does: the value is JSON if it can be read as JSON. */
export function pairOf(text: string): [string, unknown] {
  const at = text.indexOf("=");
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  try {
    return [name, JSON.parse(value) as unknown];
  } catch {
    return [name, value];
  }
}

const NOT_IN_COMMANDS = ["version", "style", "until", "waits", "unchanged", "q"] as const;

/** Return the command. Filters that it does not know are named in a comment above it. */
export function bulkCommand(verb: string, ids: readonly string[] | null, filter: RunFilter, reason: string): string {
  const options: [string, string][] = [["--reason", reason]];
  if (ids !== null) return weftCommand(verb, [...ids], options);
  options.push(["--workflow", filter.workflow], ["--status", filter.status[0] ?? ""], ["--since", filter.since]);
  for (const pair of filter.where) options.push(["--where", pair]);
  if (filter.parent) options.push(["--where", "parent=" + filter.parent]);
  const unknown = [...NOT_IN_COMMANDS.filter((key) => filter[key] !== ""), ...(filter.status.length > 1 ? ["several states"] : [])];
  const command = weftCommand(verb, [], options);
  return unknown.length > 0 ? `# for more runs: the command does not know ${unknown.join(", ")}\n${command}` : command;
}
