// Thumbnails and measures of all heads, made layer by layer so that the page stays responsive with 505 tokens and 144 heads.
import { useEffect, useMemo, useState } from "preact/hooks";
import { largestSize } from "../colours";
import { weightScale, type WeightScale } from "../fade";
import { layoutOf, shapeWeights } from "../compose";
import type { ViewProps } from "../context";
import { scaleFor } from "../figure";
import { heatmap } from "../heatmap";
import type { Palette } from "../palette";
import { CanvasPen } from "../pen";
import type { Source } from "../source";
import { TextMeasures } from "./measures";

export const MAX_THUMBNAIL_LINES = 120;
const PAUSE = 40; // milliseconds of work after which the page may draw
const STRENGTHS = 12;

export interface Thumbnails {
  images: (HTMLCanvasElement | null)[]; // layer after layer; null while not made
  measures: TextMeasures;
  made: number; // grows with every head
}

const measuresOf = new WeakMap<Source, TextMeasures>();

/** Thumbnails of this side in pixels; `ink` draws them without hue, for cells whose colour is a measure. */
export function useThumbnails({ source, state, palette }: ViewProps, side: number, ink: boolean): Thumbnails {
  const [, redraw] = useState(0);
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.mass, state.threshold, state.top, state.cells];
  const thumbnails = useMemo<Thumbnails>(() => {
    const measures = measuresOf.get(source) ?? new TextMeasures(source);
    measuresOf.set(source, measures);
    return { images: new Array<HTMLCanvasElement | null>(source.layers * source.heads).fill(null), measures, made: 0 };
  }, [source, palette, side, ink, ...filters]);
  useEffect(() => {
    let outdated = false;
    const make = async () => {
      const layout = layoutOf(state, source);
      const [headWeights, attention] = [source.quantities[state.quantity], source.quantities[0]];
      const shades = ink ? inkPalette(palette) : palette;
      let started = performance.now();
      for (let layer = 0; layer < source.layers; layer++) {
        await headWeights.load([layer]);
        await attention.load([layer]);
        for (let head = 0; head < source.heads; head++) {
          if (performance.now() - started > PAUSE) {
            redraw((count) => count + 1);
            await new Promise((resolve) => setTimeout(resolve));
            started = performance.now();
          }
          if (outdated) return;
          const between = headWeights.head(layer, head);
          if (!thumbnails.measures.has(layer, head)) thumbnails.measures.add(layer, head, headWeights === attention ? between : attention.head(layer, head));
          const weights = shapeWeights(between, layout, state);
          const [rows, columns] = [layout.rows.length, layout.columns.length];
          thumbnails.images[layer * source.heads + head] = state.cells === "lines" ? lineThumbnail(weights, rows, columns, side, shades, weightScale(shades, [weights], layout, state.special)) : heatmap(weights, rows, columns, side, weightScale(shades, [weights], layout, state.special));
          thumbnails.made++;
        }
      }
      redraw((count) => count + 1);
    };
    void make();
    return () => {
      outdated = true;
    };
  }, [thumbnails]);
  return thumbnails;
}

const inks = new Map<Palette, Palette>();

/** The palette with weights as ink: from the background to the foreground. */
function inkPalette(palette: Palette): Palette {
  const mixed = inks.get(palette) ?? { ...palette, above: [palette.background, palette.foreground] };
  inks.set(palette, mixed);
  return mixed;
}

/** Lines from rows at the left to columns at the right, the strongest only if there are many. */
function lineThumbnail(weights: Float32Array, rows: number, columns: number, side: number, palette: Palette, colours: WeightScale): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const scale = scaleFor(side, side, 1);
  canvas.width = canvas.height = Math.max(1, Math.round(side * scale));
  const pen = new CanvasPen(canvas.getContext("2d")!);
  const max = largestSize([weights]);
  if (!(max > 0)) return canvas;
  const threshold = strongestThreshold(weights, max);
  const groups: number[][] = Array.from({ length: 3 * STRENGTHS }, () => []); // faded, above 0, below 0
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]);
    if (!(size > 0) || size < threshold) continue;
    const [row, column] = [Math.trunc(i / columns), i % columns];
    const strength = Math.min(STRENGTHS - 1, Math.trunc((size / colours.scale.max) * STRENGTHS));
    const group = colours.of(row, column) !== colours.scale ? 0 : weights[i] < 0 ? 2 : 1;
    groups[group * STRENGTHS + strength].push(1, ((row + 0.5) * side) / rows, side - 1, ((column + 0.5) * side) / columns);
  }
  groups.forEach((points, index) => {
    const strength = ((index % STRENGTHS) + 0.5) / STRENGTHS;
    const ramp = index < 2 * STRENGTHS ? palette.above : palette.below;
    const isFaded = index < STRENGTHS;
    if (points.length) pen.lines(points, isFaded ? palette.muted : ramp[Math.min(3, ramp.length - 1)], (isFaded ? 0.4 : 1) * strength ** 1.5, 0.5 + (isFaded ? 0.4 : 1) * strength);
  });
  return canvas;
}

/** The weight that at most MAX_THUMBNAIL_LINES weights reach. */
function strongestThreshold(weights: Float32Array, max: number): number {
  if (weights.length <= MAX_THUMBNAIL_LINES) return 0;
  const counts = new Uint32Array(513);
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]);
    if (size === size) counts[Math.trunc((size / max) * 512)]++;
  }
  let [bin, lines] = [512, 0];
  while (bin > 0 && lines + counts[bin] <= MAX_THUMBNAIL_LINES) lines += counts[bin--];
  return ((bin + 1) / 512) * max;
}
