/** The filter that the address holds. */
import { useMemo } from "react";

import { queryOf } from "../../shell/address";
import { useChosen } from "../../shell/address";
import { addressOf, readAddress, type ReadFilter } from "./filter";

/** Return the filter, what is wrong with it, and its part of the address. It stays the same object while it is the same. */
export function useFilter(): ReadFilter & { query: string } {
  const chosen = useChosen();
  const read = useMemo(() => readAddress(chosen), [chosen]);
  const query = queryOf(addressOf(read.filter));
  // Another selection makes another address, but not another filter.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const filter = useMemo(() => read.filter, [query]);
  return { filter, findings: read.findings, query };
}
