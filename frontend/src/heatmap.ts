// A matrix of weights as an image: one pixel per cell, or per block of cells, with its strongest weight.
import type { WeightScale } from "./fade";

export function heatmap(weights: ArrayLike<number>, rows: number, columns: number, side: number, colours: WeightScale): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const [height, width] = [Math.min(rows, side), Math.min(columns, side)];
  canvas.width = Math.max(1, width);
  canvas.height = Math.max(1, height);
  if (!rows || !columns) return canvas;
  const strongest = height === rows && width === columns ? weights : pool(weights, rows, columns, height, width);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  colours.scale.fill(pixels, strongest);
  colours.eachFadedCell((row, column, grey) => {
    const position = Math.trunc((row * height) / rows) * width + Math.trunc((column * width) / columns);
    const weight = weights[row * columns + column];
    if (weight === strongest[position]) pixels[position] = grey.pixel(weight);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The strongest weight of each block, with its sign. */
export function pool(weights: ArrayLike<number>, rows: number, columns: number, height: number, width: number): Float32Array {
  const strongest = new Float32Array(height * width);
  const across = Uint32Array.from({ length: columns }, (_, column) => Math.trunc((column * width) / columns));
  for (let row = 0; row < rows; row++) {
    const start = Math.trunc((row * height) / rows) * width;
    for (let column = 0; column < columns; column++) {
      const position = start + across[column];
      const value = weights[row * columns + column];
      if (Math.abs(value) > Math.abs(strongest[position])) strongest[position] = value;
    }
  }
  return strongest;
}

/** What a reduced image shows, as a sentence; empty if every weight has a pixel. */
export function poolingNote(rows: number, columns: number, side: number): string {
  const block = Math.max(rows, columns) / side;
  if (block <= 1) return "";
  return `A pixel shows the strongest weight of up to ${Math.ceil(block)} × ${Math.ceil(block)}.`;
}
