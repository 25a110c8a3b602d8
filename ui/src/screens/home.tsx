/** The first address: the runs. The server sends `weft ui RUN` straight to its run. */
import { useEffect } from "react";

import { navigate } from "../shell/address";

export default function Home(): null {
  useEffect(() => navigate("/runs", { replace: true }), []);
  return null;
}
