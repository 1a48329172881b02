// Colours of heads and of weights.
import type { Palette } from "./palette";

export function headColour(palette: Palette, index: number): string {
  return palette.series[index % palette.series.length];
}

type Colour = [number, number, number]; // red, green, blue

function parseHex(hex: string): Colour {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Colour;
}

/** A colour that is part of the way from one to another. */
export function mix(from: string, to: string, part: number): string {
  const [a, b] = [parseHex(from), parseHex(to)];
  return `#${a.map((value, i) => Math.round(value + (b[i] - value) * part).toString(16).padStart(2, "0")).join("")}`;
}

const DARK_TEXT = "#000000"; // with a lighter one some backgrounds reach 4.5:1 neither with it nor with white
const DARK_TEXT_LUMINANCE = relativeLuminance(parseHex(DARK_TEXT));

/** As in WCAG 2: from 0 for black to 1 for white. */
function relativeLuminance(colour: Colour): number {
  const [r, g, b] = colour.map((part) => (part <= 10.31475 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Weights to colours: 256 steps from faint to strong on either side of 0. */
export class Scale {
  private readonly above: Colour[];
  private readonly below: Colour[];

  constructor(palette: Palette, readonly max: number) {
    [this.above, this.below] = rampsOf(palette);
  }

  /** The colours of many values as the pixels of an image. */
  fill(pixels: Uint32Array, values: ArrayLike<number>): void {
    const [above, below] = [this.above, this.below].map((side) => Uint32Array.from(side, asPixel));
    const factor = this.max > 0 ? 255 / this.max : 0;
    for (let i = 0; i < pixels.length; i++) {
      const step = Math.round(values[i] * factor);
      pixels[i] = step < 0 ? below[Math.min(255, -step)] : above[Math.min(255, step || 0)];
    }
  }

  pixel(value: number): number {
    return asPixel(this.at(value));
  }

  at(value: number): Colour {
    const side = value < 0 ? this.below : this.above;
    if (value !== value || this.max <= 0) return side[0];
    return side[Math.min(255, Math.round((Math.abs(value) / this.max) * 255))];
  }

  css(value: number): string {
    return `rgb(${this.at(value).join(" ")})`;
  }

  /** The text colour that reads best on the colour of a value. */
  textColour(value: number): string {
    const luminance = relativeLuminance(this.at(value));
    return (luminance + 0.05) / (DARK_TEXT_LUMINANCE + 0.05) >= 1.05 / (luminance + 0.05) ? DARK_TEXT : "#ffffff";
  }
}

/** A colour as the number that is its opaque pixel. */
function asPixel([r, g, b]: Colour): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

const ramps = new Map<Palette, [Colour[], Colour[]]>();

function rampsOf(palette: Palette): [Colour[], Colour[]] {
  const both = ramps.get(palette) ?? [ramp(palette.above), ramp(palette.below)];
  ramps.set(palette, both);
  return both;
}

function ramp(stops: string[]): Colour[] {
  const colours = stops.map(parseHex);
  return Array.from({ length: 256 }, (_, index) => {
    const position = (index / 255) * (colours.length - 1);
    const first = Math.min(Math.trunc(position), colours.length - 2);
    return colours[first].map((part, i) => Math.round(part + (colours[first + 1][i] - part) * (position - first))) as Colour;
  });
}

/** The largest absolute weight of all series. */
export function largestSize(all: Float32Array[]): number {
  let max = 0;
  for (const weights of all) for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) > max) max = Math.abs(weights[i]);
  return max;
}
