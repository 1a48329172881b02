// Colours of weights between tokens: those of faded special tokens are grey, and the others set the scale.
import { largestSize, mix, Scale } from "./colours";
import type { Layout } from "./compose";
import type { Palette } from "./palette";
import type { State } from "./state";

const GREY = 0.45; // of the way from the background to the muted colour, for the strongest weight

export const FADED_NOTE = "Grey: from or to a special token; the other weights set the scale.";

/** Whether each row and each column is that of a faded token. */
interface Faded {
  rows: boolean[];
  columns: boolean[];
}

/** The colours of a matrix of weights; without faded tokens it is the scale alone. */
export class WeightScale {
  constructor(readonly scale: Scale, private readonly grey: Scale = scale, private readonly faded: Faded | null = null) {}

  /** The scale of one cell. */
  of(row: number, column: number): Scale {
    return this.faded && (this.faded.rows[row] || this.faded.columns[column]) ? this.grey : this.scale;
  }

  /** The same colours for rows and columns in another order. */
  ordered(rows: number[], columns: number[]): WeightScale {
    const { scale, grey, faded } = this;
    return faded ? new WeightScale(scale, grey, { rows: rows.map((row) => faded.rows[row]), columns: columns.map((column) => faded.columns[column]) }) : this;
  }

  get fades(): boolean {
    return this.faded !== null;
  }

  eachFadedCell(visit: (row: number, column: number, grey: Scale) => void): void {
    if (!this.faded) return;
    const { rows, columns } = this.faded;
    const special = columns.flatMap((isFaded, column) => (isFaded ? [column] : []));
    for (let row = 0; row < rows.length; row++) {
      if (rows[row]) for (let column = 0; column < columns.length; column++) visit(row, column, this.grey);
      else for (const column of special) visit(row, column, this.grey);
    }
  }
}

/** The colours of matrices of the same rows and columns. */
export function weightScale(palette: Palette, matrices: Float32Array[], { units, rows, columns }: Layout, special: State["special"]): WeightScale {
  const isFaded = (unit: number) => units[unit].special;
  const faded = special === "fade" && (rows.some(isFaded) || columns.some(isFaded)) ? { rows: rows.map(isFaded), columns: columns.map(isFaded) } : null;
  const max = (faded && largestOrdinary(matrices, faded)) || largestSize(matrices);
  return new WeightScale(new Scale(palette, max), new Scale(greyOf(palette), max), faded);
}

function largestOrdinary(matrices: Float32Array[], { rows, columns }: Faded): number {
  let max = 0;
  for (const weights of matrices) {
    for (let row = 0; row < rows.length; row++) {
      if (rows[row]) continue;
      const start = row * columns.length;
      for (let column = 0; column < columns.length; column++) {
        const size = Math.abs(weights[start + column]);
        if (size > max && !columns[column]) max = size;
      }
    }
  }
  return max;
}

const greys = new Map<Palette, Palette>();

function greyOf(palette: Palette): Palette {
  const strongest = mix(palette.background, palette.muted, GREY);
  const grey = greys.get(palette) ?? { ...palette, above: [palette.above[0], strongest], below: [palette.above[0], strongest] };
  greys.set(palette, grey);
  return grey;
}
