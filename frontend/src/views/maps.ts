// The map of a head's attention with token labels: its geometry and its drawing, on screen and in exports.
import type { WeightScale } from "../fade";
import { heatmap } from "../heatmap";
import type { Palette } from "../palette";
import { FONT, type Pen } from "../pen";
import { fitText as fit, textWidth as widthOf } from "../text";

/** A matrix of weights with the texts of its rows and columns. */
export interface WeightMap {
  title: string;
  rows: string[];
  columns: string[];
  weights: Float32Array;
}

export interface MapSize {
  width: number;
  height: number;
  left: number;
  top: number;
  side: number; // of the square of cells
  title: number; // height of the title
  upright: boolean; // whether the texts of columns are drawn without rotation
}

const TITLE = 22;
const AXES = 16;
const FONTS = [11, 10, 9]; // the largest with which all columns have a text, else the first
const LINE = 1.1; // of the size of a font
const AXES_TEXT = "from ↓  to →";
const AXES_FONT = 10;
const MAX_LEFT = 120;
const MAX_TOP = 78;
const MIN_SIDE = 140;
const MIN_LEFT = 20; // with less space rows have no texts
const SINE = Math.SQRT1_2; // texts of columns are rotated by 45 degrees

const widths = new Map<string, number>(); // measuring is slow, and tokens repeat

function textWidth(text: string, size: number): number {
  const key = `${size} ${text}`;
  const width = widths.get(key) ?? widthOf(text, size, FONT);
  widths.set(key, width);
  return width;
}

function fitText(text: string, width: number, size: number): string {
  return textWidth(text, size) <= width ? text : fit(text, width, size, FONT);
}

/** The largest square of cells, with texts of rows and columns, in a space of this width and height. */
export function sizeOf(maps: WeightMap[], width: number, height: number): MapSize {
  const font = FONTS[0];
  const widest = (texts: string[]) => Math.max(0, ...texts.map((text) => textWidth([...text].slice(0, 24).join(""), font)));
  const title = maps.some((map) => map.title) ? TITLE : 0;
  const left = Math.ceil(Math.max(64, textWidth(AXES_TEXT, AXES_FONT) + 8, Math.min(MAX_LEFT, width * 0.28, Math.max(...maps.map((map) => widest(map.rows))) + 10)));
  const label = Math.min(MAX_TOP / SINE, Math.max(...maps.map((map) => widest(map.columns))));
  const fits = (side: number) => maps.every((map) => map.columns.every((text) => textWidth(text, font) + 4 <= side / map.columns.length));
  const upright = fits(Math.min(width - left, height - AXES - title - font));
  const top = title + AXES + Math.ceil(upright ? font + 6 : label * SINE + font);
  const right = upright ? 4 : Math.ceil(Math.min(label * SINE, 48));
  const side = Math.max(MIN_SIDE, Math.min(width - left - right, height - top - 2));
  return { width: left + side + right, height: top + side + 2, left, top, side, title, upright };
}

/** The largest font with which every row or column has a text, and 1; else the largest, and every how many have one. */
function textsOf(count: number, side: number, sine: number): { font: number; step: number } {
  const space = (side / count) * sine;
  const font = FONTS.find((size) => size * LINE <= space);
  return font ? { font, step: 1 } : { font: FONTS[0], step: Math.ceil((FONTS[0] * LINE) / space) };
}

export function drawMap(pen: Pen, map: WeightMap, colours: WeightScale, palette: Palette, size: MapSize, x = 0): void {
  const { left, top, side, upright } = size;
  const { rows, columns } = map;
  if (map.title) pen.text(x, 9, fitText(map.title, size.width, 13), palette.foreground, 13, "start");
  if (left > MIN_LEFT) pen.text(x + left - 6, top - 12, AXES_TEXT, palette.muted, AXES_FONT, "end");
  pen.image(heatmap(map.weights, rows.length, columns.length, Math.floor(side), colours), x + left, top, side, side);
  pen.rect(x + left - 0.5, top - 0.5, side + 1, side + 1, palette.grid, true);
  const [down, right] = [side / rows.length, side / columns.length];
  const rowTexts = textsOf(rows.length, side, 1);
  const columnTexts = textsOf(columns.length, side, upright ? Infinity : SINE);
  if (left > MIN_LEFT) rows.forEach((text, row) => row % rowTexts.step === 0 && pen.text(x + left - 6, top + (row + 0.5) * down, fitText(text, left - 8, rowTexts.font), palette.foreground, rowTexts.font, "end"));
  const { font } = columnTexts;
  const room = upright ? right : (top - size.title - AXES - font / 2) / SINE;
  columns.forEach((text, column) => {
    if (column % columnTexts.step) return;
    const middle = x + left + (column + 0.5) * right;
    if (upright) pen.text(middle, top - font / 2 - 3, text, palette.foreground, font, "middle");
    else pen.text(middle, top - 6, fitText(text, room, font), palette.foreground, font, "start", true);
  });
}

export interface Cell {
  row: number;
  column: number;
}

/** The cell at a point; in the margins the row or column alone, the other is -1. */
export function cellAt(map: WeightMap, size: MapSize, x: number, y: number): Cell | null {
  const row = Math.floor(((y - size.top) / size.side) * map.rows.length);
  const column = Math.floor(((x - size.left) / size.side) * map.columns.length);
  const [inRows, inColumns] = [row >= 0 && row < map.rows.length, column >= 0 && column < map.columns.length];
  if (inRows && (inColumns || x < size.left)) return { row, column: inColumns ? column : -1 };
  return inColumns && y < size.top ? { row: -1, column } : null;
}

export function outlineCell(pen: Pen, map: WeightMap, size: MapSize, { row, column }: Cell, palette: Palette): void {
  const [down, right] = [size.side / map.rows.length, size.side / map.columns.length];
  const [x, width] = column < 0 ? [0, size.side] : [column * right, right];
  const [y, height] = row < 0 ? [0, size.side] : [row * down, down];
  pen.rect(size.left + x, size.top + y, width, height, palette.background, true);
  pen.rect(size.left + x - 1, size.top + y - 1, width + 2, height + 2, palette.foreground, true);
}
