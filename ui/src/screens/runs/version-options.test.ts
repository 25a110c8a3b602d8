import { expect, it } from "vitest";

import { versionOptions } from "./version-options";

it("a tag stands for the version that it names, because runs are found by versions", () => {
  expect(versionOptions([{ version: "9b05e09", tags: ["live", "beta"] }, { version: "188fb919", tags: [] }])).toEqual([
    { value: "9b05e09", label: "@live · @beta · 9b05e09" },
    { value: "188fb919", label: "188fb919" },
  ]);
});
