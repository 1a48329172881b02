// Two runs: how much each head differs, and the selected head's attention in both and the difference.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Scale } from "../colours";
import type { Palette } from "../palette";
import { compose, type Picture, unitsOf } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { formatWeight } from "../numbers";
import type { Source } from "../source";
import type { State } from "../state";
import { drawPanel, type Panel, panelsOf, type Size, sizeOf } from "./panels";
import { LargestDifferences, StrongestWeights } from "./tables";

const LABEL = 30;

export function DifferenceView(props: ViewProps) {
  const { sources, state, update, palette, width, setFigure } = props;
  const [first, second] = sources;
  const comparable = haveSameLayout(first, second, state.units);
  const head = state.heads[0];
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.threshold, state.top];
  const distances = useMemo(() => (comparable ? headDistances(sources, state) : null), [sources, ...filters]);
  const pictures = useMemo(() => sources.map((source) => oneHead(source, state, head)), [sources, state.layer, head, ...filters]);
  const names = [first.run.name, second.run.name];
  const panels = useMemo(() => panelsOf(pictures, names, comparable), [pictures]);
  const side = useMemo(() => fittingSize(panels, width), [panels, width]);
  useLayoutEffect(() => {
    const figure = { width: (side.width + 14) * panels.length, height: side.height };
    setFigure({ ...figure, draw: (pen) => panels.forEach((panel, index) => drawPanel(pen, panel, palette, side, index * (side.width + 14))) });
  });
  const differ = !sameTokens(pictures);
  return (
    <section class="difference-view" aria-label="Difference view">
      {differ && (
        <dl class="inputs">
          {sources.map(({ run }) => [<dt key={run.name}>{run.name}</dt>, <dd key={`${run.name} text`}><bdi>{run.words.join(" ")}</bdi></dd>])}
        </dl>
      )}
      {distances ? (
        <>
          <p class="note">Difference of each head, {names[0]} vs. {names[1]}: total variation distance, mean over rows; 0 identical, 1 disjoint. Select a head.</p>
          <Grid distances={distances} source={first} state={state} update={update} palette={palette} width={width} />
        </>
      ) : (
        <p class="note">
          The runs differ in tokens or heads: their attention is shown side by side, without a difference.
          {state.units === "tokens" && haveSameLayout(first, second, "words") && <> <button type="button" data-choice="Compare words" onClick={() => update({ units: "words", token: -1 })}>Compare words</button></>}
        </p>
      )}
      <h2>Head {state.layer + 1}-{head + 1}</h2>
      <p class="note">Rows attend to columns.{comparable && ` In the difference, blue is more and orange less attention in ${names[1]}.`}</p>
      <Panels panels={panels} side={side} palette={palette} name={`${state.layer + 1}-${head + 1}`} linked={comparable} />
      {comparable ? <LargestDifferences pictures={pictures} names={names} /> : <StrongestWeights pictures={pictures} names={names} />}
    </section>
  );
}

/** The largest size at which token labels fit, with as many panels in a row as possible. */
function fittingSize(panels: Panel[], width: number): Size {
  const maxColumns = width < 480 ? 1 : panels.length;
  const sizes = Array.from({ length: maxColumns }, (_, less) => sizeOf(panels, Math.floor(width / (maxColumns - less)) - 14));
  return sizes.find((size) => size.left > 0) ?? sizes[width < 700 ? sizes.length - 1 : 0];
}

/** The hovered cell; in all panels at once if their positions correspond. */
interface Cell {
  panel: number;
  row: number;
  column: number;
}

function Panels({ panels, side, palette, name, linked }: { panels: Panel[]; side: Size; palette: Palette; name: string; linked: boolean }) {
  const [cell, setCell] = useState<Cell | null>(null);
  const valueOf = ({ weights, columns }: Panel) => formatWeight(weights[cell!.row * columns.length + cell!.column]);
  const description = () => {
    const { rows, columns } = panels[linked ? panels.length - 1 : cell!.panel];
    const values = (linked ? panels : [panels[cell!.panel]]).map((panel) => `${panel.name} ${valueOf(panel)}`);
    return `from ${rows[cell!.row]} to ${columns[cell!.column]}: ${values.join(", ")}`;
  };
  return (
    <>
      <div class="patterns">
        {panels.map((panel, index) => <PanelCanvas key={panel.name} panel={panel} side={side} palette={palette} head={name} cell={cell && (linked || cell.panel === index) ? cell : null} point={(row, column) => setCell(row < 0 ? null : { panel: index, row, column })} />)}
      </div>
      <p class="note hint" role="status">{cell ? description() : "Hover over a cell to see its tokens and weight."}</p>
    </>
  );
}

interface PanelCanvasProps {
  panel: Panel;
  side: Size;
  palette: Palette;
  head: string;
  cell: Cell | null;
  point: (row: number, column: number) => void;
}

function PanelCanvas({ panel, side, palette, head, cell, point }: PanelCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [down, right] = [side.side / panel.rows.length, side.side / panel.columns.length];
  useLayoutEffect(
    () =>
      paint(canvas.current!, {
        ...side,
        draw: (pen) => {
          drawPanel(pen, panel, palette, side, 0);
          if (cell) pen.rect(side.left + cell.column * right, side.top + cell.row * down, right, down, palette.foreground, true);
        },
      }),
    [panel, palette, side, cell],
  );
  const read = (event: MouseEvent) => {
    const [row, column] = [Math.floor((event.offsetY - side.top) / down), Math.floor((event.offsetX - side.left) / right)];
    const inside = row >= 0 && column >= 0 && row < panel.rows.length && column < panel.columns.length;
    if (!inside) point(-1, -1);
    else if (cell?.row !== row || cell.column !== column) point(row, column);
  };
  return <canvas ref={canvas} data-panel={panel.name} onMouseMove={read} onMouseLeave={() => point(-1, -1)} role="img" aria-label={`Attention of head ${head}, ${panel.name}`} style={{ width: `${side.width}px`, height: `${side.height}px` }} />;
}

function Grid({ distances, source, state, update, palette, width }: { distances: number[]; source: Source } & Pick<ViewProps, "state" | "update" | "palette" | "width">) {
  const { layers, heads } = source;
  const cell = Math.max(22, Math.min(44, Math.floor((Math.min(width, 640) - LABEL - 2 * heads) / heads)));
  const scale = new Scale(palette, Math.max(...distances));
  return (
    <div class="grid" role="group" aria-label="Heads" style={{ gridTemplateColumns: `${LABEL}px repeat(${heads}, ${cell}px)` }}>
      <span />
      {Array.from({ length: heads }, (_, head) => <span class="muted" key={head}>{head + 1}</span>)}
      {Array.from({ length: layers }, (_, layer) => [
        <span class="muted" key={layer}>{layer + 1}</span>,
        ...Array.from({ length: heads }, (_, head) => {
          const value = distances[layer * heads + head];
          return (
            <button
              type="button"
              key={`${layer}-${head}`}
              data-head={`${layer + 1}-${head + 1}`}
              aria-pressed={layer === state.layer && head === state.heads[0]}
              aria-label={`Head ${layer + 1}-${head + 1}: ${formatWeight(value)}`}
              title={`${layer + 1}-${head + 1}: ${formatWeight(value)}`}
              style={{ background: scale.css(value), color: scale.textColour(value), height: `${cell * 0.7}px` }}
              onClick={() => update({ layer, heads: [head] })}
            >
              {value.toFixed(2).replace(/^0/, "")}
            </button>
          );
        }),
      ])}
    </div>
  );
}

/** Whether the tokens (or words) of both runs correspond by position. */
function haveSameLayout(first: Source, second: Source, kind: State["units"]): boolean {
  if (first.layers !== second.layers || first.heads !== second.heads) return false;
  const [a, b] = [first, second].map((source) => unitsOf(source, kind));
  const word = (source: Source, token: number) => source.run.tokens[token].word_index;
  return a.length === b.length && a.every((unit, index) => {
    const other = b[index];
    return unit.special === other.special && unit.segment === other.segment && word(first, unit.tokens[0]) === word(second, other.tokens[0]);
  });
}

function sameTokens([a, b]: Picture[]): boolean {
  return a.units.length === b.units.length && a.units.every((unit, index) => unit.text === b.units[index].text);
}

function oneHead(source: Source, state: State, head: number): Picture {
  const layer = Math.min(state.layer, source.layers - 1);
  const part = source.run.is_pair ? state.part : "all";
  return compose({ ...state, layer, part, heads: [Math.min(head, source.heads - 1)], across: "one", fusion: "each" }, source);
}

/** (layer, head) mean over rows of the total variation distance between the rows of both runs. */
function headDistances(sources: Source[], state: State): number[] {
  const [first] = sources;
  const distances: number[] = [];
  for (let layer = 0; layer < first.layers; layer++) {
    for (let head = 0; head < first.heads; head++) {
      const [a, b] = sources.map((source) => oneHead(source, { ...state, layer }, head));
      const [x, y] = [a.series[0].weights, b.series[0].weights];
      let sum = 0;
      for (let i = 0; i < x.length; i++) sum += Math.abs((y[i] || 0) - (x[i] || 0));
      distances.push(a.rows.length ? sum / 2 / a.rows.length : 0);
    }
  }
  return distances;
}
