/** Command lines that do the same as a button. Pure. */

/** Quote a word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", `'\\''`) + "'";
}

/** `weftCommand("cancel", id, ["--reason", reason])`; options without a value are left out. */
export function weftCommand(verb: string, words: string[], options: [string, string][] = []): string {
  const parts = ["weft", verb, ...words.map(shellWord)];
  for (const [name, value] of options) if (value) parts.push(name, shellWord(value));
  return parts.join(" ");
}
