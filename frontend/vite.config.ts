// Two files from one set of components: `page.js` runs by itself in a self-contained HTML file, `widget.js` is the
// module a notebook imports. `VIEWS_ENTRY` says which one; build.py runs Vite once for each.
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
      formats: [entry === "page" ? "iife" : "es"],
      fileName: () => `${entry}.js`,
    },
  },
});
