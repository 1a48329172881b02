// Two runs on one page: how far each head moved, and the chosen head's maps beside each other and their difference.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Scale } from "../colours";
import { compose, type Picture } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { heatmap } from "../heatmap";
import { weight } from "../numbers";
import type { Pen } from "../pen";
import type { Source } from "../source";
import type { State } from "../state";

const LABEL = 30;

export function DifferenceView(props: ViewProps) {
  const { sources, state, update, palette, width, setFigure } = props;
  const [first, second] = sources;
  const comparable = alike(first, second);
  const head = state.heads[0];
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.threshold, state.top];
  const moved = useMemo(() => (comparable ? movements(sources, state) : null), [sources, ...filters]);
  const largest = moved ? Math.max(...moved) : 0;
  const { layers, heads } = first;
  const cell = Math.max(22, Math.min(44, Math.floor((Math.min(width, 640) - LABEL - 2 * heads) / heads)));
  const maps = useMemo(() => [first, second].map((source) => oneHead(source, state, head)), [sources, state.layer, head, ...filters]);
  const figure = useRef<HTMLCanvasElement>(null);
  const side = Math.max(180, Math.min(380, Math.floor((width - 40) / (width < 700 ? 1 : 3))));
  const drawing = { width: (side + 14) * (comparable ? 3 : 2), height: side + 22, draw: (pen: Pen) => drawMaps(pen, props, maps, comparable, side) };
  const columns = width < 700 ? 1 : comparable ? 3 : 2;
  useLayoutEffect(() => {
    setFigure(drawing);
    if (figure.current) paint(figure.current, columns === 1 ? stacked(drawing, props, maps, comparable, side) : drawing);
  });
  const scale = new Scale(palette, largest);
  return (
    <section class="difference-view" aria-label="Difference view">
      {moved ? (
        <>
          <p class="note">Share of its weight that each head moved, {first.run.name} against {second.run.name}: half the summed differences of a row, mean over rows; 0 the same, 1 all elsewhere. In the difference blue is more, orange less, in {second.run.name}. Choose a head.</p>
          <div class="grid" role="group" aria-label="Heads" style={{ gridTemplateColumns: `${LABEL}px repeat(${heads}, ${cell}px)` }}>
            <span />
            {Array.from({ length: heads }, (_, one) => <span class="soft" key={one}>{one + 1}</span>)}
            {Array.from({ length: layers }, (_, layer) => [
              <span class="soft" key={layer}>{layer + 1}</span>,
              ...Array.from({ length: heads }, (_, one) => {
                const value = moved[layer * heads + one];
                return (
                  <button
                    type="button"
                    key={`${layer}-${one}`}
                    data-head={`${layer + 1}-${one + 1}`}
                    aria-pressed={layer === state.layer && one === head}
                    aria-label={`Head ${layer + 1}-${one + 1}: ${weight(value)}`}
                    title={`${layer + 1}-${one + 1}: ${weight(value)}`}
                    style={{ background: scale.css(value), color: scale.wantsDarkInk(value) ? "#16181c" : "#fff", height: `${cell * 0.7}px` }}
                    onClick={() => update({ layer, heads: [one] })}
                  >
                    {value.toFixed(2).replace(/^0/, "")}
                  </button>
                );
              }),
            ])}
          </div>
        </>
      ) : (
        <p class="note">The two inputs have other tokens or other heads: the maps stand side by side, without a difference.</p>
      )}
      <h2>Head {state.layer + 1}-{head + 1}</h2>
      <canvas ref={figure} role="img" aria-label={`Maps of head ${state.layer + 1}-${head + 1} in both, and their difference`} style={columns === 1 ? { width: `${side}px`, height: `${(side + 22) * (comparable ? 3 : 2)}px` } : { width: `${drawing.width}px`, height: `${drawing.height}px` }} />
      {comparable && <Largest maps={maps} names={[first.run.name, second.run.name]} />}
    </section>
  );
}

function alike(first: Source, second: Source): boolean {
  const same = first.pieces === second.pieces && first.layers === second.layers && first.heads === second.heads;
  return same && first.run.pieces.every((piece, index) => piece.word === second.run.pieces[index].word);
}

function oneHead(source: Source, state: State, head: number): Picture {
  const layer = Math.min(state.layer, source.layers - 1);
  return compose({ ...state, layer, heads: [Math.min(head, source.heads - 1)], across: "one", fusion: "each" }, source);
}

/** (layer, head) mean over rows of the total-variation distance between two rows. */
function movements(sources: Source[], state: State): number[] {
  const [first] = sources;
  const found: number[] = [];
  for (let layer = 0; layer < first.layers; layer++) {
    for (let head = 0; head < first.heads; head++) {
      const [a, b] = sources.map((source) => oneHead(source, { ...state, layer }, head));
      const difference = subtracted(a, b);
      let sum = 0;
      for (let i = 0; i < difference.length; i++) sum += Math.abs(difference[i]);
      found.push(a.rows.length ? sum / 2 / a.rows.length : 0);
    }
  }
  return found;
}

function subtracted(a: Picture, b: Picture): Float32Array {
  const [x, y] = [a.series[0].weights, b.series[0].weights];
  return x.map((value, i) => (y[i] || 0) - (value || 0));
}

function drawMaps(pen: Pen, props: ViewProps, maps: Picture[], comparable: boolean, side: number, down = false): void {
  const { palette, sources } = props;
  const strongest = (weights: Float32Array) => weights.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0);
  const reach = Math.max(...maps.map((map) => strongest(map.series[0].weights)));
  const panels = maps.map((map, index) => ({ name: sources[index].run.name, weights: map.series[0].weights, map, reach }));
  if (comparable) {
    const weights = subtracted(maps[0], maps[1]);
    panels.push({ name: "second − first", weights, map: maps[0], reach: strongest(weights) });
  }
  panels.forEach(({ name, weights, map, reach: own }, index) => {
    const [x, y] = down ? [0, index * (side + 22)] : [index * (side + 14), 0];
    pen.text(x, y + 9, `${name} (to ${weight(own)})`, palette.ink, 12, "start");
    pen.image(heatmap(weights, map.rows.length, map.columns.length, 1024, new Scale(palette, own)), x, y + 20, side, side);
  });
}

function stacked(drawing: { height: number }, props: ViewProps, maps: Picture[], comparable: boolean, side: number) {
  return { width: side, height: drawing.height * (comparable ? 3 : 2), draw: (pen: Pen) => drawMaps(pen, props, maps, comparable, side, true) };
}

function Largest({ maps, names }: { maps: Picture[]; names: string[] }) {
  const [a, b] = maps;
  const difference = subtracted(a, b);
  const order = Array.from(difference.keys()).sort((x, y) => Math.abs(difference[y]) - Math.abs(difference[x])).slice(0, 12);
  const width = a.columns.length;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">from</th><th scope="col">to</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th><th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          {order.map((place) => (
            <tr key={place}>
              <th scope="row"><bdi>{a.units[a.rows[Math.trunc(place / width)]].text}</bdi></th>
              <th scope="row"><bdi>{a.units[a.columns[place % width]].text}</bdi></th>
              <td>{weight(a.series[0].weights[place])}</td>
              <td>{weight(b.series[0].weights[place])}</td>
              <td>{difference[place] > 0 ? "+" : ""}{weight(difference[place])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
