/** What is typed into the dialog of a fork, as the body of its request. Pure. */

export type Point = "at" | "before" | "after" | "failure" | "start";
export type Typed = { point: Point; place: string; at: number; input: string; result: string; to: string; id: string; effects: "perform" | "reuse" | "none" };
export type ForkBody = {
  at?: number; before?: string; after?: string; failure?: boolean;
  input?: Record<string, unknown>; set?: Record<string, unknown>; to?: string; id?: string; effects?: Typed["effects"];
};

/** Return the body, or what is wrong with what is typed. */
export function forkBody(typed: Typed): ForkBody | { problem: string } {
  const body: ForkBody = { ...pointOf(typed) };
  if (typed.input.trim()) {
    const input = parsed(typed.input);
    if (typeof input !== "object" || input === null || Array.isArray(input)) return { problem: "The arguments must be a JSON object: {\"name\": value}." };
    body.input = input as Record<string, unknown>;
  }
  if (typed.result.trim()) {
    const result = parsed(typed.result);
    if (result === undefined) return { problem: "The result must be JSON. A text needs quotation marks." };
    body.set = { [typed.place]: result };
  }
  if (typed.to.trim()) body.to = typed.to.trim();
  if (typed.id.trim()) body.id = typed.id.trim();
  if (typed.effects !== "perform") body.effects = typed.effects;
  return body;
}

function pointOf({ point, place, at }: Typed): ForkBody {
  switch (point) {
    case "at": return { at };
    case "before": return { before: place };
    case "after": return { after: place };
    case "failure": return { failure: true };
    case "start": return {};
    default: return point satisfies never;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
