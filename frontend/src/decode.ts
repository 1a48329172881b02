// Decodes the arrays of the payload: base64, deflate, then rows of integers with one scale per row.
import type { QuantisedRows } from "./payload";

/** One layer: rows of `size` integers, in `levels` steps of the row's scale. */
export interface Rows {
  scales: Float32Array;
  steps: Uint8Array | Uint16Array;
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
  const count = quantised.heads * quantised.rows;
  const scales = new Float32Array(bytes.buffer, 0, count);
  const start = 4 * count;
  const steps =
    quantised.bytes === 1 ? new Uint8Array(bytes.buffer, start) : new Uint16Array(bytes.buffer, start, count * quantised.size);
  return { scales, steps };
}

/** (row, size) values of one head. */
export function decodeHead(quantised: QuantisedRows, { scales, steps }: Rows, head: number): Float32Array {
  const { rows, size, levels, signed } = quantised;
  const values = new Float32Array(rows * size);
  const zero = signed ? levels : 0;
  for (let row = 0; row < rows; row++) {
    const step = scales[head * rows + row] / levels;
    const start = (head * rows + row) * size;
    for (let i = 0; i < size; i++) values[row * size + i] = (steps[start + i] - zero) * step;
  }
  return values;
}
