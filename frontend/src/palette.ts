// Generated from src/bertology/results/palette.py by `python -m bertology.views.typescript frontend/src`; do not edit.

export interface Palette {
  background: string;
  foreground: string;
  muted: string;
  grid: string;
  above: string[];
  below: string[];
  series: string[];
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
  series: ["#1f5fa8", "#c2570c", "#00806a", "#a3437f", "#6b6f76", "#8a6d00", "#3aa0d8", "#5b3fa0", "#b3261e", "#4c7a12", "#0f4c5c", "#d1568f", "#7a4a21", "#2e8b8b", "#94469e", "#444a52"],
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
  series: ["#7fb5f0", "#f2a154", "#45c4a7", "#e58fc4", "#b4bac2", "#e3c74b", "#4fd0e6", "#b39ddb", "#ff8a80", "#a5d364", "#6fa8b8", "#f7a8c9", "#d0a27a", "#7fd6d6", "#d59be0", "#8f98a3"],
  goldArc: "#e6b53c",
  predictedArc: "#e58fc4",
};
