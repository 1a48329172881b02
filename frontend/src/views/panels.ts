// Attention of a head in two runs and their difference, with token labels if there is space.
import { largestSize, Scale } from "../colours";
import type { Palette } from "../palette";
import type { Picture } from "../compose";
import { heatmap } from "../heatmap";
import { formatWeight } from "../numbers";
import type { Pen } from "../pen";

export interface Panel {
  name: string;
  rows: string[];
  columns: string[];
  weights: Float32Array;
  max: number;
}

export function panelsOf(pictures: Picture[], names: string[], comparable: boolean): Panel[] {
  const max = Math.max(...pictures.map((picture) => largestSize([picture.series[0].weights])));
  const panels = pictures.map((picture, index) => ({ name: names[index], rows: textsOf(picture, picture.rows), columns: textsOf(picture, picture.columns), weights: picture.series[0].weights, max }));
  if (!comparable) return panels;
  const weights = difference(pictures);
  return [...panels, { name: "second − first", rows: panels[0].rows.map((text, row) => joinTexts(text, panels[1].rows[row])), columns: panels[0].columns.map((text, column) => joinTexts(text, panels[1].columns[column])), weights, max: largestSize([weights]) }];
}

function textsOf(picture: Picture, units: number[]): string[] {
  return units.map((unit) => picture.units[unit].text);
}

/** One text, or both if they differ. */
export function joinTexts(first: string, second: string): string {
  return first === second ? first : `${first} / ${second}`;
}

export function difference([a, b]: Picture[]): Float32Array {
  const [x, y] = [a.series[0].weights, b.series[0].weights];
  return x.map((value, i) => (y[i] || 0) - (value || 0));
}

export interface Size {
  width: number;
  height: number;
  left: number;
  top: number;
  side: number; // of the square of cells
}

const TITLE = 20;
const RIGHT = 30; // space for the rotated label of the last column
const MIN_LABEL_HEIGHT = 9;

/** Sizes of a panel, with space for token labels if every row can have one. */
export function sizeOf(panels: Panel[], width: number): Size {
  const nLabels = Math.max(1, ...panels.map((panel) => Math.max(panel.rows.length, panel.columns.length)));
  const [left, above] = [Math.min(110, Math.round(width * 0.26)), 62];
  const labelledSide = Math.min(460, width - left - RIGHT);
  if (labelledSide / nLabels >= MIN_LABEL_HEIGHT) return { width: left + labelledSide + RIGHT, height: TITLE + above + labelledSide, left, top: TITLE + above, side: labelledSide };
  const side = Math.max(180, Math.min(460, width));
  return { width: side, height: TITLE + side, left: 0, top: TITLE, side };
}

export function drawPanel(pen: Pen, panel: Panel, palette: Palette, size: Size, x: number): void {
  const { left, top, side } = size;
  const { rows, columns } = panel;
  if (panel.name) pen.text(x, 9, clip(`${panel.name} (max ${formatWeight(panel.max)})`, size.width / 6.4), palette.foreground, 12, "start");
  pen.image(heatmap(panel.weights, rows.length, columns.length, 1024, new Scale(palette, panel.max)), x + left, top, side, side);
  if (!left) return;
  const maxLength = left / 6.2;
  const font = Math.min(11, Math.floor(side / Math.max(rows.length, columns.length)));
  rows.forEach((text, row) => pen.text(x + left - 4, top + ((row + 0.5) * side) / rows.length, clip(text, maxLength), palette.foreground, font, "end"));
  columns.forEach((text, column) => pen.text(x + left + ((column + 0.5) * side) / columns.length, top - 5, clip(text, 12), palette.foreground, font, "start", true));
}

function clip(text: string, maxLength: number): string {
  const signs = [...text];
  return signs.length > maxLength ? `${signs.slice(0, Math.max(1, Math.floor(maxLength) - 1)).join("")}…` : text;
}
