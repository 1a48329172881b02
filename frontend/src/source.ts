// The maps and vectors of one run, decoded a layer at a time when they are first looked at.
import { decodeHead, decodeLayer, type Rows } from "./decode";
import type { Coded, HeadLabel, Run } from "./payload";

/** Maps by layer and head, new ones each time; `rolled` holds those that rollout has multiplied already. */
export interface Maps {
  readonly rolled: Map<string, Float32Array>;
  head(layer: number, head: number): Float32Array;
}

export class Layers implements Maps {
  readonly rolled = new Map<string, Float32Array>();
  private readonly kept = new Map<number, Rows>();

  constructor(readonly coded: Coded) {}

  ready(layers: number[]): boolean {
    return layers.every((layer) => this.kept.has(layer));
  }

  async load(layers: number[]): Promise<void> {
    for (const layer of layers) {
      if (!this.kept.has(layer)) this.kept.set(layer, await decodeLayer(this.coded, layer));
    }
  }

  head(layer: number, head: number): Float32Array {
    return decodeHead(this.coded, this.rows(layer), head);
  }

  rows(layer: number): Rows {
    const rows = this.kept.get(layer);
    if (!rows) throw new Error(`layer ${layer + 1} was not loaded`);
    return rows;
  }
}

/** Heads that attend alike to all that a piece can see in their layer. */
class Even implements Maps {
  readonly rolled = new Map<string, Float32Array>();

  constructor(private readonly source: Source) {}

  head(layer: number): Float32Array {
    const n = this.source.pieces;
    const weights = new Float32Array(n * n);
    for (let from = 0; from < n; from++) {
      const [first, end] = this.source.seen(layer, from);
      weights.fill(1 / (end - first), from * n + first, from * n + end);
    }
    return weights;
  }
}

export class Source {
  readonly quantities: Layers[];
  readonly lengths: Layers | null;
  readonly query: Layers | null;
  readonly key: Layers | null;
  readonly even: Maps = new Even(this);

  constructor(readonly run: Run) {
    this.quantities = run.quantities.map((coded) => new Layers(coded.maps));
    this.lengths = run.lengths && new Layers(run.lengths);
    this.query = run.query && new Layers(run.query);
    this.key = run.key && new Layers(run.key);
  }

  labels(layer: number, head: number): HeadLabel[] {
    return this.run.labels.filter((one) => one.layer === layer && one.head === head);
  }

  /** The pieces that a piece can see in a layer: the first of them, and the one after the last. */
  seen(layer: number, from: number): [number, number] {
    const { causal, reach } = this.run;
    const far = reach[layer] ?? this.pieces;
    return [Math.max(0, from - far), causal ? from + 1 : Math.min(this.pieces, from + far + 1)];
  }

  get pieces(): number {
    return this.run.pieces.length;
  }

  get layers(): number {
    return this.run.quantities[0].maps.chunks.length;
  }

  get heads(): number {
    return this.run.quantities[0].maps.heads;
  }
}
