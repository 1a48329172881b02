// Three builds of the same components: `page.js` for self-contained HTML files, `widget.js` as a module for notebooks,
// `workbench.js` for the page of `bertology serve`.
// The variable VIEWS_ENTRY selects one; build.py runs Vite for each.
import { defineConfig } from "vite";

const entry = process.env.VIEWS_ENTRY ?? "page";

export default defineConfig({
  build: {
    outDir: process.env.VIEWS_OUTPUT ?? "../src/bertology/views/assets",
    emptyOutDir: false,
    target: "es2022",
    lib: {
      entry: `src/${entry}.tsx`,
      name: "bertologyViews",
      formats: [entry === "widget" ? "es" : "iife"],
      fileName: () => `${entry}.js`,
    },
  },
});
