// The maps and vectors of one run, decoded a layer at a time when they are first looked at.
import { decodeHead, decodeLayer, type Rows } from "./decode";
import type { Coded, HeadLabel, Run } from "./payload";

export class Layers {
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

export class Source {
  readonly quantities: Layers[];
  readonly lengths: Layers | null;
  readonly query: Layers | null;
  readonly key: Layers | null;
  readonly rolled = new Map<string, Float32Array>();

  constructor(readonly run: Run) {
    this.quantities = run.quantities.map((coded) => new Layers(coded.maps));
    this.lengths = run.lengths && new Layers(run.lengths);
    this.query = run.query && new Layers(run.query);
    this.key = run.key && new Layers(run.key);
  }

  labels(layer: number, head: number): HeadLabel[] {
    return this.run.labels.filter((one) => one.layer === layer && one.head === head);
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
