// How an attention weight is computed: query, key, their product by neuron, sum, scaling and softmax.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { largestSize, Scale } from "../colours";
import type { Palette } from "../palette";
import { unitsOf } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { formatWeight } from "../numbers";
import type { Pen } from "../pen";
import type { Source } from "../source";

const STEP = 22;
const TOP = 26;
const GAP = 14;
const TOLERANCE = 0.02;
const NARROW = 480;
const COLUMNS = ["q·k", "scaled", "softmax", "attention"];

interface Scores {
  query: Float32Array;
  keys: Float32Array;
  size: number;
  dots: Float32Array;
  scaled: Float32Array;
  softmax: Float32Array;
  attention: Float32Array;
}

export function NeuronView(props: ViewProps) {
  const { source, state, update, palette, width, setFigure } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const head = state.heads[0];
  const units = useMemo(() => unitsOf(source, "tokens"), [source]);
  const first = units.findIndex((unit) => !unit.special);
  const token = state.token >= 0 && state.token < units.length && state.units === "tokens" ? state.token : Math.max(0, first);
  const scores = useMemo(() => scoresOf(source, state.layer, head, token), [source, state.layer, head, token]);
  const { size } = scores;
  const narrow = width < NARROW;
  const cell = Math.max(narrow ? 1.5 : 2, Math.min(6, Math.floor((Math.min(width, 1400) - 440 - GAP) / (2 * size))));
  const strips = { width: 2 * size * cell + GAP, height: TOP + STEP * units.length };
  const draw = (pen: Pen) => drawStrips(pen, scores, units.length, cell, palette);
  useLayoutEffect(() => {
    if (canvas.current) paint(canvas.current, { ...strips, draw });
    setFigure({
      width: 130 + strips.width + 300,
      height: strips.height + 8,
      draw: (pen) => {
        drawStrips(pen, scores, units.length, cell, palette, 130);
        COLUMNS.forEach((name, column) => pen.text(130 + strips.width + 60 * (column + 1), 13, name, palette.muted, 10, "end"));
        units.forEach((unit, position) => {
          const y = TOP + (position + 0.5) * STEP;
          pen.text(124, y, unit.text, palette.foreground, 12, "end");
          columnsOf(scores, position).forEach((text, column) => pen.text(130 + strips.width + 60 * (column + 1), y, text, palette.foreground, 12, "end"));
        });
      },
    });
  });
  const differs = scores.softmax.some((value, position) => Math.abs(value - scores.attention[position]) > TOLERANCE);
  return (
    <section class="neuron-view" aria-label="Neuron view">
      <p class="row">
        <label>
          Query of{" "}
          <select data-choice="Query" value={token} onChange={(event) => update({ token: Number(event.currentTarget.value), side: "from", units: "tokens" })}>
            {units.map((unit, position) => (
              <option value={position} key={position}>{unit.text}</option>
            ))}
          </select>
        </label>
        <span class="note">
          Head {state.layer + 1}-{head + 1}, {size} neurons. Blue is positive, orange negative; each kind of strip is scaled to its largest absolute value.
        </span>
      </p>
      {differs && <p class="note">This model adds other terms to its scores than query times key (for example for positions), so the softmax of the scaled scores differs from its attention.</p>}
      <div class="scroll">
        <div class={`neurons ${narrow ? "narrow" : ""}`} style={{ gridTemplateColumns: narrow ? `62px ${strips.width}px minmax(150px, 1fr)` : `112px ${strips.width}px minmax(260px, 320px)` }}>
          <ol class="names" style={{ paddingTop: `${TOP}px` }}>
            {units.map((unit, position) => (
              <li key={position} style={{ height: `${STEP}px` }}>
                <button type="button" data-token={position} aria-pressed={position === token} onClick={() => update({ token: position, side: "from", units: "tokens" })}>
                  <bdi>{unit.text}</bdi>
                </button>
              </li>
            ))}
          </ol>
          <canvas ref={canvas} style={{ width: `${strips.width}px`, height: `${strips.height}px` }} role="img" aria-label={`Query of ${units[token].text}, keys and their products`} />
          <table class="scores">
            <thead>
              <tr style={{ height: `${TOP}px` }}>
                <th scope="col" title="dot product of query and key">{COLUMNS[0]}</th>
                <th scope="col" title="divided by the square root of the number of neurons">{COLUMNS[1]}</th>
                <th scope="col" title="over the tokens visible to this token in this layer">{COLUMNS[2]}</th>
                <th scope="col" title="the weight in the model">{COLUMNS[3]}</th>
              </tr>
            </thead>
            <tbody>
              {units.map((_, position) => (
                <tr key={position} style={{ height: `${STEP}px` }}>
                  {columnsOf(scores, position).map((text, column) => (
                    <td key={column} data-score={column}>{text}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </section>
  );
}

function columnsOf(scores: Scores, position: number): string[] {
  return [scores.dots[position].toFixed(2), scores.scaled[position].toFixed(2), formatWeight(scores.softmax[position]), formatWeight(scores.attention[position])];
}

function scoresOf(source: Source, layer: number, head: number, token: number): Scores {
  const n = source.nTokens;
  const size = source.query!.quantised.size;
  const query = source.query!.head(layer, head).subarray(token * size, (token + 1) * size);
  const keys = source.key!.head(layer, head);
  const attention = source.quantities[0].head(layer, head).subarray(token * n, (token + 1) * n);
  const dots = Float32Array.from({ length: n }, (_, position) => query.reduce((sum, value, i) => sum + value * keys[position * size + i], 0));
  const scaled = dots.map((value) => value / Math.sqrt(size));
  const [first, end] = source.visibleRange(layer, token);
  const largest = Math.max(...scaled.subarray(first, end));
  const exponentials = scaled.map((value, position) => (position >= first && position < end ? Math.exp(value - largest) : 0));
  const sum = exponentials.reduce((total, value) => total + value, 0);
  return { query, keys, size, dots, scaled, softmax: exponentials.map((value) => value / sum), attention };
}

function drawStrips(pen: Pen, scores: Scores, count: number, cell: number, palette: Palette, left = 0): void {
  const { query, keys, size } = scores;
  const second = left + size * cell + GAP;
  const products = keys.map((value, i) => value * query[i % size]);
  const scales = [query, keys, products].map((values) => new Scale(palette, largestSize([values])));
  const wide = size * cell > 110;
  pen.text(left, 6, wide ? "query, then each key" : "q, k", palette.muted, 10, "start");
  pen.text(second, 6, wide ? "query × key" : "q × k", palette.muted, 10, "start");
  for (let i = 0; i < size; i++) pen.rect(left + i * cell, 13, cell, 11, scales[0].css(query[i]));
  for (let position = 0; position < count; position++) {
    const y = TOP + position * STEP + 2;
    for (let i = 0; i < size; i++) {
      pen.rect(left + i * cell, y, cell, STEP - 4, scales[1].css(keys[position * size + i]));
      pen.rect(second + i * cell, y, cell, STEP - 4, scales[2].css(products[position * size + i]));
    }
  }
}
