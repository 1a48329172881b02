// How one weight comes about: query and key, their product neuron by neuron, its sum, scaled, through the softmax.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Palette, Scale } from "../colours";
import { unitsOf } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { weight } from "../numbers";
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
  const units = useMemo(() => unitsOf(source, "pieces"), [source]);
  const first = units.findIndex((unit) => !unit.special);
  const token = state.token >= 0 && state.token < units.length && state.units === "pieces" ? state.token : Math.max(0, first);
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
        COLUMNS.forEach((name, column) => pen.text(130 + strips.width + 60 * (column + 1), 13, name, palette.soft, 10, "end"));
        units.forEach((unit, place) => {
          const y = TOP + (place + 0.5) * STEP;
          pen.text(124, y, unit.text, palette.ink, 12, "end");
          columnsOf(scores, place).forEach((text, column) => pen.text(130 + strips.width + 60 * (column + 1), y, text, palette.ink, 12, "end"));
        });
      },
    });
  });
  const differs = scores.softmax.some((value, place) => Math.abs(value - scores.attention[place]) > TOLERANCE);
  return (
    <section class="neuron-view" aria-label="Neuron view">
      <p class="row">
        <label>
          Query of{" "}
          <select data-choice="Query" value={token} onChange={(event) => update({ token: Number(event.currentTarget.value), side: "from", units: "pieces" })}>
            {units.map((unit, place) => (
              <option value={place} key={place}>{unit.text}</option>
            ))}
          </select>
        </label>
        <span class="note">
          Head {state.layer + 1}-{head + 1}, {size} neurons. Blue is positive, orange negative; strips are scaled to their own largest size.
        </span>
      </p>
      {differs && <p class="note">This model adds more to its scores than query times key (positions, for example), so the softmax of the scaled scores is not its attention.</p>}
      <div class="scroll">
        <div class={`neurons ${narrow ? "narrow" : ""}`} style={{ gridTemplateColumns: narrow ? `62px ${strips.width}px minmax(150px, 1fr)` : `112px ${strips.width}px minmax(260px, 320px)` }}>
          <ol class="names" style={{ paddingTop: `${TOP}px` }}>
            {units.map((unit, place) => (
              <li key={place} style={{ height: `${STEP}px` }}>
                <button type="button" data-token={place} aria-pressed={place === token} onClick={() => update({ token: place, side: "from", units: "pieces" })}>
                  <bdi>{unit.text}</bdi>
                </button>
              </li>
            ))}
          </ol>
          <canvas ref={canvas} style={{ width: `${strips.width}px`, height: `${strips.height}px` }} role="img" aria-label={`Query of ${units[token].text}, keys and their products`} />
          <table class="scores">
            <thead>
              <tr style={{ height: `${TOP}px` }}>
                <th scope="col" title="query times key, summed over neurons">{COLUMNS[0]}</th>
                <th scope="col" title="divided by the square root of the number of neurons">{COLUMNS[1]}</th>
                <th scope="col" title="over the pieces that this one can see in this layer">{COLUMNS[2]}</th>
                <th scope="col" title="the model's own weight">{COLUMNS[3]}</th>
              </tr>
            </thead>
            <tbody>
              {units.map((_, place) => (
                <tr key={place} style={{ height: `${STEP}px` }}>
                  {columnsOf(scores, place).map((text, column) => (
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

function columnsOf(scores: Scores, place: number): string[] {
  return [scores.dots[place].toFixed(2), scores.scaled[place].toFixed(2), weight(scores.softmax[place]), weight(scores.attention[place])];
}

function scoresOf(source: Source, layer: number, head: number, token: number): Scores {
  const n = source.pieces;
  const size = source.query!.coded.size;
  const query = source.query!.head(layer, head).subarray(token * size, (token + 1) * size);
  const keys = source.key!.head(layer, head);
  const attention = source.quantities[0].head(layer, head).subarray(token * n, (token + 1) * n);
  const dots = Float32Array.from({ length: n }, (_, place) => query.reduce((sum, value, i) => sum + value * keys[place * size + i], 0));
  const scaled = dots.map((value) => value / Math.sqrt(size));
  const [first, end] = source.seen(layer, token);
  const largest = Math.max(...scaled.subarray(first, end));
  const powers = scaled.map((value, place) => (place >= first && place < end ? Math.exp(value - largest) : 0));
  const sum = powers.reduce((total, value) => total + value, 0);
  return { query, keys, size, dots, scaled, softmax: powers.map((value) => value / sum), attention };
}

function drawStrips(pen: Pen, scores: Scores, count: number, cell: number, palette: Palette, left = 0): void {
  const { query, keys, size } = scores;
  const second = left + size * cell + GAP;
  const products = keys.map((value, i) => value * query[i % size]);
  const scales = [query, keys, products].map((numbers) => new Scale(palette, numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
  const wide = size * cell > 110;
  pen.text(left, 6, wide ? "query, then each key" : "q, k", palette.soft, 10, "start");
  pen.text(second, 6, wide ? "query × key" : "q × k", palette.soft, 10, "start");
  for (let i = 0; i < size; i++) pen.rect(left + i * cell, 13, cell, 11, scales[0].css(query[i]));
  for (let place = 0; place < count; place++) {
    const y = TOP + place * STEP + 2;
    for (let i = 0; i < size; i++) {
      pen.rect(left + i * cell, y, cell, STEP - 4, scales[1].css(keys[place * size + i]));
      pen.rect(second + i * cell, y, cell, STEP - 4, scales[2].css(products[place * size + i]));
    }
  }
}
