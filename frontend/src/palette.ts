// Generated from src/bertology/results/palette.py by `python -m bertology.views.typescript frontend/src`; do not edit.

export interface Palette {
  background: string;
  foreground: string;
  muted: string;
  grid: string;
  above: string[];
  below: string[];
  series: string[];
  untrained: string;
  published: string;
  baseline: string;
  goldArc: string;
  predictedArc: string;
}

export const LIGHT: Palette = {
  background: "#ffffff",
  foreground: "#1b1f24",
  muted: "#57606a",
  grid: "#dfe3e8",
  above: ["#f6f6f4", "#b5d0e8", "#6ba3d3", "#2f74b5", "#12457c", "#082647"],
  below: ["#f6f6f4", "#f6cf9f", "#e79a4c", "#bf6516", "#7f3d06", "#4a2202"],
  series: ["#1f5fa8", "#ed6e05", "#0a6450", "#c4195e", "#905b13", "#9744fa", "#5197ea", "#691f31", "#892603", "#12a879", "#bf7fa5", "#817e7e", "#1400c8", "#fc5266", "#83814b", "#5f4274"],
  untrained: "#b35900",
  published: "#8e1b5f",
  baseline: "#6b7280",
  goldArc: "#8a5a00",
  predictedArc: "#a3437f",
};

export const DARK: Palette = {
  background: "#16181c",
  foreground: "#e8eaed",
  muted: "#a2abb6",
  grid: "#343a42",
  above: ["#22262b", "#29486a", "#2f6ca8", "#5598dc", "#93c3f5", "#d9ecff"],
  below: ["#22262b", "#5f3d1a", "#96591a", "#cf8531", "#f2b266", "#ffe3bf"],
  series: ["#7fb5f0", "#f8941e", "#01a87a", "#d92c8e", "#c3b36c", "#b534f2", "#0f829f", "#98f49a", "#f50424", "#eef116", "#dad5f8", "#fc7d94", "#5d822b", "#8e83d0", "#25b9c0", "#b5dbcd"],
  untrained: "#f2a154",
  published: "#e58fc4",
  baseline: "#8d96a1",
  goldArc: "#e6b53c",
  predictedArc: "#e58fc4",
};
