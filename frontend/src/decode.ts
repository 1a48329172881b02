// Decodes the arrays of the payload: base64, deflate, then floats, or rows of integers with one scale per row.
import type { QuantisedRows } from "./payload";

/** One layer: rows of `size` integers in `levels` steps of the row's scale, or the numbers themselves. */
export interface Rows {
  scales: Float32Array | null;
  steps: Uint8Array | Uint16Array | Float32Array;
}

export async function inflate(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

export async function decodeLayer(quantised: QuantisedRows, layer: number): Promise<Rows> {
  const bytes = await inflate(quantised.chunks[layer]);
  if (quantised.levels === 0) return { scales: null, steps: fromPlanes(bytes) };
  const count = quantised.heads * quantised.rows;
  const scales = new Float32Array(bytes.buffer, 0, count);
  const start = 4 * count;
  const steps =
    quantised.bytes === 1 ? new Uint8Array(bytes.buffer, start) : new Uint16Array(bytes.buffer, start, count * quantised.size);
  return { scales, steps };
}

/** Floats whose lowest bytes are stored first, then the next ones. */
function fromPlanes(planes: Uint8Array): Float32Array {
  const count = planes.length / 4;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane++) for (let i = 0; i < count; i++) bytes[4 * i + plane] = planes[plane * count + i];
  return new Float32Array(bytes.buffer);
}

/** (row, size) values of one head. */
export function decodeHead(quantised: QuantisedRows, { scales, steps }: Rows, head: number): Float32Array {
  const { rows, size, levels, signed } = quantised;
  if (!scales) return (steps as Float32Array).slice(head * rows * size, (head + 1) * rows * size);
  const values = new Float32Array(rows * size);
  const zero = signed ? levels : 0;
  for (let row = 0; row < rows; row++) {
    const step = scales[head * rows + row] / levels;
    const start = (head * rows + row) * size;
    for (let i = 0; i < size; i++) values[row * size + i] = (steps[start + i] - zero) * step;
  }
  return values;
}

/** One value. */
export function decodeValue(quantised: QuantisedRows, { scales, steps }: Rows, head: number, row: number, column: number): number {
  const { rows, size, levels, signed } = quantised;
  const value = steps[(head * rows + row) * size + column];
  return scales ? (value - (signed ? levels : 0)) * (scales[head * rows + row] / levels) : value;
}
