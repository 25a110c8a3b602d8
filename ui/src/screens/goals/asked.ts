/** What is wanted and given, read from the address and written to it. Pure. */

export type Fact = { name: string; value?: unknown };
export type Asked = { want: string[]; given: Fact[]; isAll: boolean | null };

/** Read `want=a,b`, `given=x,y`, facts with values as `fact=name=JSON`, and `show=all|plan`. */
export function readAsked(query: URLSearchParams): Asked {
  const names = split(query.get("given")).map((name): Fact => ({ name }));
  const valued = query.getAll("fact").map(readFact).filter((fact) => fact !== null);
  const show = query.get("show");
  const given = [...names.filter(({ name }) => !valued.some((one) => one.name === name)), ...valued];
  return { want: split(query.get("want")), given, isAll: show === null ? null : show === "all" };
}

function readFact(text: string): Fact | null {
  const cut = text.indexOf("=");
  if (cut <= 0) return null;
  try {
    return { name: text.slice(0, cut), value: JSON.parse(text.slice(cut + 1)) as unknown };
  } catch {
    return { name: text.slice(0, cut), value: text.slice(cut + 1) };
  }
}

/** Return the changes of the address for what is wanted and given. */
export function writeAsked(asked: Pick<Asked, "want" | "given">): { want: string | null; given: string | null; fact: string[] } {
  const names = asked.given.filter((fact) => fact.value === undefined).map(({ name }) => name);
  return {
    want: asked.want.join(",") || null,
    given: names.join(",") || null,
    fact: asked.given.filter((fact) => fact.value !== undefined).map(({ name, value }) => `${name}=${JSON.stringify(value)}`),
  };
}

function split(text: string | null): string[] {
  return [...new Set((text ?? "").split(",").map((one) => one.trim()).filter(Boolean))];
}

/** Read what somebody typed as a fact: `order_id`, `order_id=o-1`, `total=119`. */
export function typedFact(text: string): Fact | null {
  const cut = text.indexOf("=");
  if (cut < 0) return text.trim() ? { name: text.trim() } : null;
  const [name, raw] = [text.slice(0, cut).trim(), text.slice(cut + 1).trim()];
  if (!name) return null;
  try {
    return { name, value: JSON.parse(raw) as unknown };
  } catch {
    return { name, value: raw };
  }
}

/** Return the values that are given, by name, and the names without one. */
export function splitFacts(given: readonly Fact[]): { given: string[]; values: Record<string, unknown> } {
  const values: Record<string, unknown> = {};
  for (const fact of given) if (fact.value !== undefined) values[fact.name] = fact.value;
  return { given: given.filter((fact) => fact.value === undefined).map(({ name }) => name), values };
}

/** Return the lines that do the same elsewhere. */
export function pythonLines(want: readonly string[], given: readonly Fact[]): string {
  const facts = given.map(({ name, value }) => `${JSON.stringify(name)}: ${value === undefined ? "..." : pythonValue(value)}`).join(", ");
  return `goal = app.goal("my-goal", ${want.join(", ")})\nfacts = app.run(goal, {${facts}})`;
}

function pythonValue(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
