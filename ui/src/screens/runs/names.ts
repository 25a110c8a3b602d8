/** The workflows that can be chosen, their versions, and the tags of versions. */
import { useMemo } from "react";

import { api, read } from "../../api/client";
import { useAsked } from "../../api/queries";
import type { WorkflowView } from "../../api/schema";
import { versionOptions } from "./version-options";

export type WorkflowNames = {
  names: string[];
  all: WorkflowView[];
  isKnown: boolean;
  versions: (workflow: string) => { value: string; label: string }[];
  /** The tag of "workflow\nversion". */
  tags: ReadonlyMap<string, string>;
};

const NONE: WorkflowView[] = [];

export function useWorkflowNames(): WorkflowNames {
  const asked = useAsked(["workflow-versions"], (signal) => read(api.GET("/api/v1/workflows", { params: { query: { limit: 200 } }, signal })), { refetchMs: 30_000 });
  const all = asked.data?.workflows ?? NONE;
  const isKnown = asked.data !== undefined;
  return useMemo(() => ({
    all, isKnown,
    names: [...new Set(all.map(({ name }) => name))].sort(),
    versions: (workflow) => versionOptions(all.filter(({ name }) => name === workflow)),
    tags: new Map(all.filter(({ tags }) => tags.length > 0).map((one) => [one.name + "\n" + one.version, one.tags[0]!])),
  }), [all, isKnown]);
}
