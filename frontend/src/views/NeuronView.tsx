// How an attention weight is computed: query, key, their product by neuron, sum, scaling and softmax.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { headColour, largestSize, Scale } from "../colours";
import type { Palette } from "../palette";
import { unitName, unitsOf } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { columnFormat, formatExact } from "../numbers";
import type { Pen } from "../pen";
import type { Source } from "../source";
import { shorten } from "../text";
import { useHeight } from "./fit";
import { Tip } from "./Tip";

const STEP = { min: 26, max: 34 }; // from one token to the next
const TOP = 30;
const GAP = 16;
const TOLERANCE = 0.02;
const NARROW = 560;
const SIZES = { name: 104, narrowName: 56, lines: 120, scores: 268, narrowScores: 172 };
const CELL = { min: 1, max: 12 };
const COLUMNS = [
  { name: "q·k", title: "dot product of query and key" },
  { name: "scaled", title: "divided by the square root of the number of neurons" },
  { name: "softmax", title: "over the tokens visible to this token in this layer" },
  { name: "attention", title: "the weight in the model" },
];
const ATTENTION = 3; // the column of the model's weight

interface Scores {
  query: Float32Array;
  keys: Float32Array;
  products: Float32Array;
  size: number;
  dots: Float32Array;
  scaled: Float32Array;
  softmax: Float32Array;
  attention: Float32Array;
  step: number; // in which the attention is stored, 0 if it is exact
}

/** A neuron of one key; position -1 is the query. */
interface Neuron {
  position: number;
  neuron: number;
}

export function NeuronView(props: ViewProps) {
  const { source, state, update, palette, width, setFigure } = props;
  const [expanded, setExpanded] = useState(true);
  const [chosen, setChosen] = useState<Neuron | null>(null);
  const head = state.heads[0];
  const units = useMemo(() => unitsOf(source, "tokens"), [source]);
  const first = units.findIndex((unit) => !unit.special);
  const token = state.token >= 0 && state.token < units.length && state.units === "tokens" ? state.token : Math.max(0, first);
  const scores = useMemo(() => scoresOf(source, state.layer, head, token), [source, state.layer, head, token]);
  const section = useRef<HTMLElement>(null);
  const height = useHeight(section, 300, [width]) - 96;
  const step = Math.floor(Math.max(STEP.min, Math.min(STEP.max, (height - TOP) / units.length)));
  const narrow = width < NARROW;
  const name = narrow ? SIZES.narrowName : SIZES.name;
  const linesWidth = expanded ? (narrow ? 0 : SIZES.lines) : Math.max(80, Math.min(760, width - 2 * name - 110));
  const names = (expanded && narrow ? 1 : 2) * name;
  const space = width - names - linesWidth - (narrow ? SIZES.narrowScores : SIZES.scores) - (narrow ? 8 : 36);
  const cell = Math.max(CELL.min, Math.min(CELL.max, (space - GAP) / (2 * scores.size)));
  const strips: Strips = { cell, step, width: 2 * scores.size * cell + GAP, height: TOP + step * units.length };
  const formats = useMemo(() => formatsOf(scores), [scores]);
  const numbers = (position: number) => [scores.dots, scores.scaled, scores.softmax, scores.attention].map((values, column) => (narrow ? shortNumber(formats[column](values[position])) : formats[column](values[position])));
  useLayoutEffect(() =>
    setFigure({
      width: SIZES.name + 6 + strips.width + 4 * 66 + 10,
      height: strips.height + 8,
      draw: (pen) => {
        const left = SIZES.name + 6;
        drawStrips(pen, scores, units.length, strips, palette, left);
        COLUMNS.forEach(({ name: text }, column) => pen.text(left + strips.width + 66 * (column + 1), 13, text, palette.muted, 10, "end"));
        units.forEach((unit, position) => {
          const y = TOP + (position + 0.5) * step;
          pen.text(left - 6, y, shorten(unit.text, 15), palette.foreground, 12, "end");
          numbers(position).forEach((text, column) => pen.text(left + strips.width + 66 * (column + 1), y, text, palette.foreground, 12, "end"));
        });
      },
    }));
  const choose = (position: number) => update({ token: position, side: "from", units: "tokens" });
  const differs = scores.softmax.some((value, position) => Math.abs(value - scores.attention[position]) > TOLERANCE);
  const columns = [!(expanded && narrow) && `${name}px`, linesWidth && `${linesWidth}px`, `${name}px`, expanded && `${strips.width}px`, expanded ? (narrow ? "minmax(0, 1fr)" : `minmax(0, ${SIZES.scores}px)`) : "80px"];
  return (
    <section class="neuron-view" aria-label="Neuron view" ref={section}>
      <p class="row">
        <label>
          Query of{" "}
          <select data-choice="Query" value={token} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {units.map((unit, position) => (
              <option value={position} key={position}>{position + 1} {unitName(unit)}</option>
            ))}
          </select>
        </label>
        <button type="button" aria-expanded={expanded} data-choice="Computation" onClick={() => setExpanded(!expanded)}>{expanded ? "Collapse to lines" : "Expand the computation"}</button>
        <span class="note">
          Head {source.nameOf(state.layer, head)}, {scores.size} neurons.{expanded && " Blue is positive, orange negative; each kind of strip is scaled to its largest absolute value. Point at a neuron, or move with the arrow keys, for its numbers."}
        </span>
      </p>
      {differs && <p class="note">This model adds other terms to its scores than query times key (for example for positions), so the softmax of the scaled scores differs from its attention.</p>}
      {!differs && <p class="note">{stepNote(source, scores)}</p>}
      <div class="scroll">
        <div class={`neurons ${narrow ? "narrow" : ""}`} style={{ gridTemplateColumns: columns.filter(Boolean).join(" ") }}>
          {!(expanded && narrow) && <Names units={units} token={token} choose={choose} title="from" step={step} />}
          {linesWidth > 0 && <Lines scores={scores} token={token} count={units.length} width={linesWidth} step={step} colour={headColour(palette, head)} />}
          {expanded && narrow ? <Names units={units} token={token} choose={choose} title="token" step={step} /> : <Names units={units} token={-1} choose={choose} title="to" step={step} keys />}
          {expanded && <StripsCanvas scores={scores} count={units.length} strips={strips} palette={palette} chosen={chosen} choose={setChosen} names={units.map(unitName)} token={token} />}
          <table class="scores">
            <thead>
              <tr style={{ height: `${TOP}px` }}>
                {COLUMNS.map(({ name: text, title }, column) => (expanded || column === ATTENTION) && <th scope="col" key={text} title={title}>{text}</th>)}
              </tr>
            </thead>
            <tbody>
              {units.map((_, position) => (
                <tr key={position} style={{ height: `${step}px` }}>
                  {numbers(position).map((text, column) => (expanded || column === ATTENTION) && (
                    <td key={column} data-score={column} title={formatExact([scores.dots, scores.scaled, scores.softmax, scores.attention][column][position])}>{text}</td>
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

interface NamesProps {
  units: { text: string }[];
  token: number;
  choose: (position: number) => void;
  title: string;
  step: number;
  keys?: boolean; // as keys: text alone
}

function Names({ units, token, choose, title, step, keys }: NamesProps) {
  return (
    <div class={`names ${keys ? "keys" : ""}`}>
      <span class="muted" style={{ height: `${TOP}px` }}>{title}</span>
      <ol>
        {units.map((unit, position) => (
          <li key={position} style={{ height: `${step}px` }}>
            {keys ? <bdi title={unit.text}>{unit.text}</bdi> : (
              <button type="button" data-token={position} title={unit.text} aria-pressed={position === token} onClick={() => choose(position)}>
                <bdi>{unit.text}</bdi>
              </button>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Lines from the token to all keys; width and opacity are the weight. */
function Lines({ scores, token, count, width, step, colour }: { scores: Scores; token: number; count: number; width: number; step: number; colour: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = TOP + step * count;
  useLayoutEffect(() => {
    const max = largestSize([scores.attention]) || 1;
    const y = (position: number) => TOP + (position + 0.5) * step;
    paint(canvas.current!, {
      width,
      height,
      draw: (pen) => {
        for (let key = 0; key < count; key++) {
          const strength = scores.attention[key] / max;
          if (strength > 0.002) pen.curve([2, y(token), width / 2, y(token), width / 2, y(key), width - 2, y(key)], colour, Math.max(0.12, strength), 0.8 + 3.2 * strength);
        }
      },
    });
  });
  return <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} role="img" aria-label="Attention of the token as lines" />;
}

interface StripsProps {
  scores: Scores;
  count: number;
  strips: Strips;
  palette: Palette;
  chosen: Neuron | null;
  choose: (neuron: Neuron | null) => void;
  names: string[];
  token: number;
}

/** Query, keys and products as strips; a neuron under the pointer or the keyboard shows its numbers. */
function StripsCanvas({ scores, count, strips, palette, chosen, choose, names, token }: StripsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { cell, step, width, height } = strips;
  const { query, keys, products, size, dots } = scores;
  const second = size * cell + GAP;
  useLayoutEffect(() =>
    paint(canvas.current!, {
      width,
      height,
      draw: (pen) => {
        drawStrips(pen, scores, count, strips, palette);
        if (!chosen) return;
        for (const start of [0, second]) pen.rect(start + chosen.neuron * cell - 0.5, 11, cell + 1, height - 11, palette.muted, true);
        if (chosen.position >= 0) for (const start of [0, second]) pen.rect(start + chosen.neuron * cell - 1, TOP + chosen.position * step + 1, cell + 2, step - 2, palette.foreground, true);
      },
    }));
  const read = (event: PointerEvent) => {
    const x = event.offsetX < second - GAP / 2 ? event.offsetX : event.offsetX - second;
    const neuron = Math.floor(x / cell);
    const position = Math.floor((event.offsetY - TOP) / step);
    if (neuron < 0 || neuron >= size || position >= count || event.offsetY < 10) return choose(null);
    return choose({ position: Math.max(-1, position), neuron });
  };
  const move = (event: KeyboardEvent) => {
    if (event.key === "Escape") return choose(null);
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!by) return undefined;
    event.preventDefault();
    const { position, neuron } = chosen ?? { position: -by[0], neuron: -by[1] };
    return choose({ position: Math.max(0, Math.min(count - 1, position + by[0])), neuron: Math.max(0, Math.min(size - 1, neuron + by[1])) });
  };
  const lines = () => {
    const { position, neuron } = chosen!;
    const heading = `neuron ${neuron + 1} of ${size}`;
    const q = `query of ${names[token]}: ${signed(query[neuron])}`;
    if (position < 0) return [heading, q];
    const product = products[position * size + neuron];
    return [heading, `q × k = ${signed(product)} of q·k = ${signed(dots[position])}`, q, `key of ${names[position]}: ${signed(keys[position * size + neuron])}`];
  };
  return (
    <div class="strips" style={{ width: `${width}px` }}>
      <canvas
        ref={canvas}
        tabIndex={0}
        style={{ width: `${width}px`, height: `${height}px` }}
        role="application"
        aria-label={`Query of ${names[token]}, keys and their products, neuron by neuron. Arrow keys move from neuron to neuron.`}
        onPointerMove={read}
        onPointerDown={read}
        onPointerLeave={(event) => event.pointerType === "mouse" && choose(null)}
        onKeyDown={move}
        onBlur={() => choose(null)}
      />
      {chosen && <Tip x={chosen.neuron * cell} y={TOP + (chosen.position + 1) * step} width={width} height={height} lines={lines()} />}
    </div>
  );
}

/** A number for a narrow column: `.123` and `<.001`. */
function shortNumber(text: string): string {
  return text.replace(/^(−|< )?0\./, (_, sign: string | undefined) => `${(sign ?? "").trim()}.`);
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

/** One format for each column of numbers. */
function formatsOf(scores: Scores): ((value: number) => string)[] {
  const plain = (value: number) => value.toFixed(2).replace("-", "−");
  return [plain, plain, columnFormat(largestSize([scores.softmax])), columnFormat(largestSize([scores.attention]), scores.step)];
}

/** How exactly softmax and attention agree. */
function stepNote(source: Source, scores: Scores): string {
  let largest = 0;
  scores.softmax.forEach((value, position) => (largest = Math.max(largest, Math.abs(value - scores.attention[position]))));
  const stored = scores.step || source.query!.quantised.levels || source.key!.quantised.levels;
  const reason = stored ? "; query, key and attention are stored in steps" + (scores.step ? `, those of the attention ${formatExact(scores.step)}` : "") : "";
  return `Softmax and the model's attention differ by at most ${largest < 1e-6 ? "1e-6" : formatExact(Number(largest.toPrecision(2)))} here${reason}.`;
}

function scoresOf(source: Source, layer: number, head: number, token: number): Scores {
  const n = source.nTokens;
  const size = source.query!.quantised.size;
  const query = source.query!.head(layer, head).subarray(token * size, (token + 1) * size);
  const keys = source.key!.head(layer, head);
  const attention = source.quantities[0].head(layer, head).subarray(token * n, (token + 1) * n);
  const { levels } = source.quantities[0].quantised;
  const dots = Float32Array.from({ length: n }, (_, position) => query.reduce((sum, value, i) => sum + value * keys[position * size + i], 0));
  const scaled = dots.map((value) => value / Math.sqrt(size));
  const [first, end] = source.visibleRange(layer, token);
  const largest = Math.max(...scaled.subarray(first, end));
  const exponentials = scaled.map((value, position) => (position >= first && position < end ? Math.exp(value - largest) : 0));
  const sum = exponentials.reduce((total, value) => total + value, 0);
  const products = keys.map((value, i) => value * query[i % size]);
  return { query, keys, products, size, dots, scaled, softmax: exponentials.map((value) => value / sum), attention, step: levels ? largestSize([attention]) / levels : 0 };
}

interface Strips {
  cell: number;
  step: number;
  width: number;
  height: number;
}

function drawStrips(pen: Pen, scores: Scores, count: number, { cell, step }: Strips, palette: Palette, left = 0): void {
  const { query, keys, products, size } = scores;
  const second = left + size * cell + GAP;
  const scales = [query, keys, products].map((values) => new Scale(palette, largestSize([values])));
  const wide = size * cell > 130;
  pen.text(left, 6, wide ? "query, then each key" : "q, k", palette.muted, 10, "start");
  pen.text(second, 6, wide ? "query × key" : "q × k", palette.muted, 10, "start");
  for (let i = 0; i < size; i++) pen.rect(left + i * cell, 13, cell, 13, scales[0].css(query[i]));
  for (let position = 0; position < count; position++) {
    const y = TOP + position * step + 2;
    for (let i = 0; i < size; i++) {
      pen.rect(left + i * cell, y, cell, step - 4, scales[1].css(keys[position * size + i]));
      pen.rect(second + i * cell, y, cell, step - 4, scales[2].css(products[position * size + i]));
    }
  }
}
