// The maps of a head in two runs and their difference, each with its tokens beside and above it where there is room.
import { reachOf, Scale, type Palette } from "../colours";
import type { Picture } from "../compose";
import { heatmap } from "../heatmap";
import { weight } from "../numbers";
import type { Pen } from "../pen";

export interface Panel {
  name: string;
  rows: string[];
  columns: string[];
  weights: Float32Array;
  reach: number;
}

export function panelsOf(maps: Picture[], names: string[], comparable: boolean): Panel[] {
  const reach = Math.max(...maps.map((map) => reachOf([map.series[0].weights])));
  const panels = maps.map((map, index) => ({ name: names[index], rows: textsOf(map, map.rows), columns: textsOf(map, map.columns), weights: map.series[0].weights, reach }));
  if (!comparable) return panels;
  const weights = subtracted(maps);
  return [...panels, { name: "second − first", rows: panels[0].rows.map((text, row) => both(text, panels[1].rows[row])), columns: panels[0].columns.map((text, column) => both(text, panels[1].columns[column])), weights, reach: reachOf([weights]) }];
}

function textsOf(map: Picture, units: number[]): string[] {
  return units.map((unit) => map.units[unit].text);
}

/** One token, or that of each input where they differ. */
export function both(first: string, second: string): string {
  return first === second ? first : `${first} / ${second}`;
}

export function subtracted([a, b]: Picture[]): Float32Array {
  const [x, y] = [a.series[0].weights, b.series[0].weights];
  return x.map((value, i) => (y[i] || 0) - (value || 0));
}

export interface Size {
  width: number;
  height: number;
  left: number;
  top: number;
  map: number;
}

const TITLE = 20;
const RIGHT = 30; // what the last token's name, turned, takes up beyond the map
const LEAST = 9; // pixels a token's name needs

/** Room for the names of tokens where every row can have one. */
export function sizeOf(panels: Panel[], width: number): Size {
  const most = Math.max(1, ...panels.map((panel) => Math.max(panel.rows.length, panel.columns.length)));
  const [left, above] = [Math.min(110, Math.round(width * 0.26)), 62];
  const named = Math.min(460, width - left - RIGHT);
  if (named / most >= LEAST) return { width: left + named + RIGHT, height: TITLE + above + named, left, top: TITLE + above, map: named };
  const map = Math.max(180, Math.min(460, width));
  return { width: map, height: TITLE + map, left: 0, top: TITLE, map };
}

export function drawPanel(pen: Pen, panel: Panel, palette: Palette, size: Size, x: number): void {
  const { left, top, map } = size;
  const { rows, columns } = panel;
  if (panel.name) pen.text(x, 9, clipped(`${panel.name} (to ${weight(panel.reach)})`, size.width / 6.4), palette.ink, 12, "start");
  pen.image(heatmap(panel.weights, rows.length, columns.length, 1024, new Scale(palette, panel.reach)), x + left, top, map, map);
  if (!left) return;
  const letters = left / 6.2;
  const font = Math.min(11, Math.floor(map / Math.max(rows.length, columns.length)));
  rows.forEach((text, row) => pen.text(x + left - 4, top + ((row + 0.5) * map) / rows.length, clipped(text, letters), palette.ink, font, "end"));
  columns.forEach((text, column) => pen.text(x + left + ((column + 0.5) * map) / columns.length, top - 5, clipped(text, 12), palette.ink, font, "start", true));
}

function clipped(text: string, letters: number): string {
  const signs = [...text];
  return signs.length > letters ? `${signs.slice(0, Math.max(1, Math.floor(letters) - 1)).join("")}…` : text;
}
