// The arrays of one run, decoded by layer on first use.
import { decodeHead, decodeLayer, decodeValue, type Rows } from "./decode";
import type { QuantisedRows, HeadLabel, ModelRun } from "./payload";

/** Weights by layer and head, as new arrays; `rolloutCache` has the products that rollout has computed. */
export interface HeadWeights {
  readonly rolloutCache: Map<string, Float32Array>;
  head(layer: number, head: number): Float32Array;
}

export class DecodedLayers implements HeadWeights {
  readonly rolloutCache = new Map<string, Float32Array>();
  private readonly cache = new Map<number, Rows>();

  constructor(readonly quantised: QuantisedRows) {}

  ready(layers: number[]): boolean {
    return layers.every((layer) => this.cache.has(layer));
  }

  async load(layers: number[]): Promise<void> {
    for (const layer of layers) {
      if (!this.cache.has(layer)) this.cache.set(layer, await decodeLayer(this.quantised, layer));
    }
  }

  head(layer: number, head: number): Float32Array {
    return decodeHead(this.quantised, this.rows(layer), head);
  }

  value(layer: number, head: number, row: number, column: number): number {
    return decodeValue(this.quantised, this.rows(layer), head, row, column);
  }

  rows(layer: number): Rows {
    const rows = this.cache.get(layer);
    if (!rows) throw new Error(`layer ${layer + 1} was not loaded`);
    return rows;
  }
}

/** Heads that attend equally to all tokens visible in their layer. */
class UniformAttention implements HeadWeights {
  readonly rolloutCache = new Map<string, Float32Array>();

  constructor(private readonly source: Source) {}

  head(layer: number): Float32Array {
    const n = this.source.nTokens;
    const weights = new Float32Array(n * n);
    for (let from = 0; from < n; from++) {
      const [first, end] = this.source.visibleRange(layer, from);
      weights.fill(1 / (end - first), from * n + first, from * n + end);
    }
    return weights;
  }
}

export class Source {
  readonly quantities: DecodedLayers[];
  readonly valueNorms: DecodedLayers | null;
  readonly query: DecodedLayers | null;
  readonly key: DecodedLayers | null;
  readonly uniform: HeadWeights = new UniformAttention(this);

  constructor(readonly run: ModelRun) {
    this.quantities = run.quantities.map((quantity) => new DecodedLayers(quantity.weights));
    this.valueNorms = run.value_norms && new DecodedLayers(run.value_norms);
    this.query = run.query && new DecodedLayers(run.query);
    this.key = run.key && new DecodedLayers(run.key);
  }

  /** The number of a layer as the model counts it, from 1; a page may have only some of the layers. */
  layerNumber(layer: number): number {
    return this.run.layer_numbers[layer] ?? layer + 1;
  }

  headNumber(head: number): number {
    return this.run.head_numbers[head] ?? head + 1;
  }

  /** The name of a head: layer-head. */
  nameOf(layer: number, head: number): string {
    return `${this.layerNumber(layer)}-${this.headNumber(head)}`;
  }

  /** The first token that attends: in cross-attention those of the encoder's text only receive attention. */
  get firstRow(): number {
    return this.run.role === "cross" ? this.run.tokens.findIndex(({ segment }) => segment === 1) : 0;
  }

  labels(layer: number, head: number): HeadLabel[] {
    return this.run.labels.filter((label) => label.layer === layer && label.head === head);
  }

  /** The tokens visible to a token in a layer: the first, and the one after the last. */
  visibleRange(layer: number, from: number): [number, number] {
    const { causal, attention_windows } = this.run;
    if (this.firstRow) return [0, this.firstRow];
    const window = attention_windows[layer] ?? this.nTokens;
    return [Math.max(0, from - window), causal ? from + 1 : Math.min(this.nTokens, from + window + 1)];
  }

  get nTokens(): number {
    return this.run.tokens.length;
  }

  get layers(): number {
    return this.run.quantities[0].weights.chunks.length;
  }

  get heads(): number {
    return this.run.quantities[0].weights.heads;
  }
}
