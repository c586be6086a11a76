import { defineConfig } from "vite";

// One script and one style sheet, no inline parts: the content policy of avad allows nothing else.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rollupOptions: { output: { manualChunks: undefined, entryFileNames: "assets/ava.js", assetFileNames: "assets/ava[extname]" } },
  },
});
