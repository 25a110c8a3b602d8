import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const PATIENT = JSON.stringify(fileURLToPath(new URL("src/shell/patient.ts", import.meta.url)));
const SERVER = process.env["WEFT_URL"] ?? "http://127.0.0.1:8420";

// The server writes one <base> into index.html, so every address in the build is relative.
export default defineConfig(({ command }) => ({
  base: command === "build" ? "./" : "/",
  plugins: [
    react(),
    {
      name: "what-the-server-fills-in",
      apply: "serve",
      transformIndexHtml: (html: string) => html.replace("__BASE__", "/").replace("__NONCE__", ""),
    },
    {
      // Vite calls a function of its own around each import(), which does not survive that the server is away.
      name: "patient-imports",
      apply: "build",
      enforce: "pre",
      load: {
        filter: { id: /vite\/preload-helper\.js$/ },
        handler: () => `export { loadPatiently as __vitePreload } from ${PATIENT};`,
      },
    },
  ],
  // `npm run dev` takes the API from a server that runs beside it.
  server: { proxy: { "/api": { target: SERVER, changeOrigin: true, ws: true, headers: { origin: SERVER } } } },
  build: {
    outDir: "../build/ui",
    emptyOutDir: true,
    manifest: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: {
      polyfill: false,
      // A module that stands alone is a file that may be missing too.
      resolveDependencies: (file, needed, { hostType }) => (hostType === "js" && needed.length === 0 ? [file] : needed),
    },
    reportCompressedSize: false,
  },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
}));
