/** Whether the window is narrow: below 760 px. */
import { useSyncExternalStore } from "react";

const query = typeof matchMedia === "undefined" ? null : matchMedia("(max-width: 760px)");

export function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      query?.addEventListener("change", listener);
      return () => query?.removeEventListener("change", listener);
    },
    () => query?.matches ?? false,
  );
}
