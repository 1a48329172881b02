// Numbers out of the payload: base64, deflate, then rows of whole numbers that each have a scale of their own.
import type { Coded } from "./payload";

/** One layer: rows of `size` numbers, each the whole number in `levels` steps of its row's scale. */
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

export async function decodeLayer(coded: Coded, layer: number): Promise<Rows> {
  const bytes = await inflate(coded.chunks[layer]);
  const count = coded.heads * coded.rows;
  const scales = new Float32Array(bytes.buffer, 0, count);
  const start = 4 * count;
  const steps =
    coded.bytes === 1 ? new Uint8Array(bytes.buffer, start) : new Uint16Array(bytes.buffer, start, count * coded.size);
  return { scales, steps };
}

/** (row, size) numbers of one head. */
export function decodeHead(coded: Coded, { scales, steps }: Rows, head: number): Float32Array {
  const { rows, size, levels, signed } = coded;
  const numbers = new Float32Array(rows * size);
  const middle = signed ? levels : 0;
  for (let row = 0; row < rows; row++) {
    const step = scales[head * rows + row] / levels;
    const start = (head * rows + row) * size;
    for (let i = 0; i < size; i++) numbers[row * size + i] = (steps[start + i] - middle) * step;
  }
  return numbers;
}
