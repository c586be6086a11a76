import { defineConfig } from "vite";

// One script, one style sheet, and the reader of Markdown behind them; nothing inline: avad's content policy forbids it.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rollupOptions: { output: { entryFileNames: "assets/ava.js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/ava[extname]" } },
  },
});
