// The colours of light and dark paper: blue and orange stay apart for all colour blindness, heads are also numbered.

export interface Palette {
  dark: boolean;
  paper: string;
  ink: string;
  soft: string;
  line: string;
  more: string[]; // faint to strong
  less: string[];
  heads: string[];
  trees: [string, string]; // annotated, found
}

export const LIGHT: Palette = {
  dark: false,
  paper: "#ffffff",
  ink: "#1b1f24",
  soft: "#57606a",
  line: "#dfe3e8",
  more: ["#f6f6f4", "#b5d0e8", "#6ba3d3", "#2f74b5", "#12457c", "#082647"],
  less: ["#f6f6f4", "#f6cf9f", "#e79a4c", "#bf6516", "#7f3d06", "#4a2202"],
  heads: [
    "#1f5fa8", "#c2570c", "#00806a", "#a3437f", "#6b6f76", "#8a6d00", "#3aa0d8", "#5b3fa0",
    "#b3261e", "#4c7a12", "#0f4c5c", "#d1568f", "#7a4a21", "#2e8b8b", "#94469e", "#444a52",
  ],
  trees: ["#8a5a00", "#a3437f"],
};

export const DARK: Palette = {
  dark: true,
  paper: "#16181c",
  ink: "#e8eaed",
  soft: "#a2abb6",
  line: "#343a42",
  more: ["#22262b", "#29486a", "#2f6ca8", "#5598dc", "#93c3f5", "#d9ecff"],
  less: ["#22262b", "#5f3d1a", "#96591a", "#cf8531", "#f2b266", "#ffe3bf"],
  heads: [
    "#7fb5f0", "#f2a154", "#45c4a7", "#e58fc4", "#b4bac2", "#e3c74b", "#4fd0e6", "#b39ddb",
    "#ff8a80", "#a5d364", "#6fa8b8", "#f7a8c9", "#d0a27a", "#7fd6d6", "#d59be0", "#8f98a3",
  ],
  trees: ["#e6b53c", "#e58fc4"],
};

export function headColour(palette: Palette, index: number): string {
  return palette.heads[index % palette.heads.length];
}

type Colour = [number, number, number];

function parts(hex: string): Colour {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Colour;
}

/** 256 colours from faint to strong on each side. */
export class Scale {
  private readonly more: Colour[];
  private readonly less: Colour[];

  constructor(palette: Palette, readonly reach: number) {
    [this.more, this.less] = rampsOf(palette);
  }

  /** The colours of many values as the pixels of an image. */
  fill(pixels: Uint32Array, values: ArrayLike<number>): void {
    const [more, less] = [this.more, this.less].map((side) => Uint32Array.from(side, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r));
    const factor = this.reach > 0 ? 255 / this.reach : 0;
    for (let i = 0; i < pixels.length; i++) {
      const step = Math.round(values[i] * factor);
      pixels[i] = step < 0 ? less[Math.min(255, -step)] : more[Math.min(255, step || 0)];
    }
  }

  at(value: number): Colour {
    const side = value < 0 ? this.less : this.more;
    if (value !== value || this.reach <= 0) return side[0];
    return side[Math.min(255, Math.round((Math.abs(value) / this.reach) * 255))];
  }

  css(value: number): string {
    return `rgb(${this.at(value).join(" ")})`;
  }

  /** Whether dark ink is read better on the colour of this value than light ink. */
  wantsDarkInk(value: number): boolean {
    const [r, g, b] = this.at(value);
    return 0.299 * r + 0.587 * g + 0.114 * b > 140;
  }
}

const ramps = new Map<Palette, [Colour[], Colour[]]>();

function rampsOf(palette: Palette): [Colour[], Colour[]] {
  const known = ramps.get(palette) ?? [ramp(palette.more), ramp(palette.less)];
  ramps.set(palette, known);
  return known;
}

function ramp(stops: string[]): Colour[] {
  const colours = stops.map(parts);
  return Array.from({ length: 256 }, (_, index) => {
    const place = (index / 255) * (colours.length - 1);
    const first = Math.min(Math.trunc(place), colours.length - 2);
    return colours[first].map((part, i) => Math.round(part + (colours[first + 1][i] - part) * (place - first))) as Colour;
  });
}

/** The largest size among the weights of all series. */
export function reachOf(all: Float32Array[]): number {
  let reach = 0;
  for (const weights of all) for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) > reach) reach = Math.abs(weights[i]);
  return reach;
}
