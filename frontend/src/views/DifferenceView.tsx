// Two runs on one page: how far each head moved, and the chosen head's maps beside each other and their difference.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Palette, Scale } from "../colours";
import { compose, type Picture, unitsOf } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { weight } from "../numbers";
import type { Source } from "../source";
import type { State } from "../state";
import { drawPanel, type Panel, panelsOf, type Size, sizeOf } from "./panels";
import { Moved, Strongest } from "./tables";

const LABEL = 30;

export function DifferenceView(props: ViewProps) {
  const { sources, state, update, palette, width, setFigure } = props;
  const [first, second] = sources;
  const comparable = alike(first, second, state.units);
  const head = state.heads[0];
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.threshold, state.top];
  const moved = useMemo(() => (comparable ? movements(sources, state) : null), [sources, ...filters]);
  const maps = useMemo(() => sources.map((source) => oneHead(source, state, head)), [sources, state.layer, head, ...filters]);
  const names = [first.run.name, second.run.name];
  const panels = useMemo(() => panelsOf(maps, names, comparable), [maps]);
  const side = useMemo(() => fittingSize(panels, width), [panels, width]);
  useLayoutEffect(() => {
    const figure = { width: (side.width + 14) * panels.length, height: side.height };
    setFigure({ ...figure, draw: (pen) => panels.forEach((panel, index) => drawPanel(pen, panel, palette, side, index * (side.width + 14))) });
  });
  const differ = !sameTokens(maps);
  return (
    <section class="difference-view" aria-label="Difference view">
      {differ && (
        <dl class="inputs">
          {sources.map(({ run }) => [<dt key={run.name}>{run.name}</dt>, <dd key={`${run.name} text`}><bdi>{run.words.join(" ")}</bdi></dd>])}
        </dl>
      )}
      {moved ? (
        <>
          <p class="note">Share of its weight that each head moved, {names[0]} against {names[1]}: half the summed differences of a row, mean over rows; 0 the same, 1 all elsewhere. Choose a head.</p>
          <Grid moved={moved} source={first} state={state} update={update} palette={palette} width={width} />
        </>
      ) : (
        <p class="note">
          The two have other tokens or other heads: the maps stand side by side, without a difference.
          {state.units === "pieces" && alike(first, second, "words") && <> <button type="button" data-choice="Compare words" onClick={() => update({ units: "words", token: -1 })}>Compare whole words</button></>}
        </p>
      )}
      <h2>Head {state.layer + 1}-{head + 1}</h2>
      <p class="note">Rows attend, columns are attended to.{comparable && ` In the difference blue is more, orange less, in ${names[1]}.`}</p>
      <Maps panels={panels} side={side} palette={palette} name={`${state.layer + 1}-${head + 1}`} linked={comparable} />
      {comparable ? <Moved maps={maps} names={names} /> : <Strongest maps={maps} names={names} />}
    </section>
  );
}

/** As many maps beside one another as leave room for the names of tokens; where none do, all of them. */
function fittingSize(panels: Panel[], width: number): Size {
  const most = width < 480 ? 1 : panels.length;
  const sizes = Array.from({ length: most }, (_, less) => sizeOf(panels, Math.floor(width / (most - less)) - 14));
  return sizes.find((size) => size.left > 0) ?? sizes[width < 700 ? sizes.length - 1 : 0];
}

/** A cell that is pointed at: in all maps at once where their places stand for one another. */
interface Cell {
  panel: number;
  row: number;
  column: number;
}

function Maps({ panels, side, palette, name, linked }: { panels: Panel[]; side: Size; palette: Palette; name: string; linked: boolean }) {
  const [cell, setCell] = useState<Cell | null>(null);
  const valueOf = ({ weights, columns }: Panel) => weight(weights[cell!.row * columns.length + cell!.column]);
  const told = () => {
    const { rows, columns } = panels[linked ? panels.length - 1 : cell!.panel];
    const values = (linked ? panels : [panels[cell!.panel]]).map((panel) => `${panel.name} ${valueOf(panel)}`);
    return `from ${rows[cell!.row]} to ${columns[cell!.column]}: ${values.join(", ")}`;
  };
  return (
    <>
      <div class="maps">
        {panels.map((panel, index) => <Map key={panel.name} panel={panel} side={side} palette={palette} head={name} cell={cell && (linked || cell.panel === index) ? cell : null} point={(row, column) => setCell(row < 0 ? null : { panel: index, row, column })} />)}
      </div>
      <p class="note drawn" role="status">{cell ? told() : "Point at a cell to read its tokens and its weight."}</p>
    </>
  );
}

interface MapProps {
  panel: Panel;
  side: Size;
  palette: Palette;
  head: string;
  cell: Cell | null;
  point: (row: number, column: number) => void;
}

function Map({ panel, side, palette, head, cell, point }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [down, right] = [side.map / panel.rows.length, side.map / panel.columns.length];
  useLayoutEffect(
    () =>
      paint(canvas.current!, {
        ...side,
        draw: (pen) => {
          drawPanel(pen, panel, palette, side, 0);
          if (cell) pen.rect(side.left + cell.column * right, side.top + cell.row * down, right, down, palette.ink, true);
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
  return <canvas ref={canvas} data-map={panel.name} onMouseMove={read} onMouseLeave={() => point(-1, -1)} role="img" aria-label={`Map of head ${head}, ${panel.name}`} style={{ width: `${side.width}px`, height: `${side.height}px` }} />;
}

function Grid({ moved, source, state, update, palette, width }: { moved: number[]; source: Source } & Pick<ViewProps, "state" | "update" | "palette" | "width">) {
  const { layers, heads } = source;
  const cell = Math.max(22, Math.min(44, Math.floor((Math.min(width, 640) - LABEL - 2 * heads) / heads)));
  const scale = new Scale(palette, Math.max(...moved));
  return (
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
              aria-pressed={layer === state.layer && one === state.heads[0]}
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
  );
}

/** Whether what stands in a place of one run has its counterpart in the same place of the other. */
function alike(first: Source, second: Source, kind: State["units"]): boolean {
  if (first.layers !== second.layers || first.heads !== second.heads) return false;
  const [a, b] = [first, second].map((source) => unitsOf(source, kind));
  const word = (source: Source, piece: number) => source.run.pieces[piece].word;
  return a.length === b.length && a.every((unit, index) => {
    const other = b[index];
    return unit.special === other.special && unit.segment === other.segment && word(first, unit.pieces[0]) === word(second, other.pieces[0]);
  });
}

function sameTokens([a, b]: Picture[]): boolean {
  return a.units.length === b.units.length && a.units.every((unit, index) => unit.text === b.units[index].text);
}

function oneHead(source: Source, state: State, head: number): Picture {
  const layer = Math.min(state.layer, source.layers - 1);
  const part = source.run.pair ? state.part : "all";
  return compose({ ...state, layer, part, heads: [Math.min(head, source.heads - 1)], across: "one", fusion: "each" }, source);
}

/** (layer, head) mean over rows of the total-variation distance between two rows. */
function movements(sources: Source[], state: State): number[] {
  const [first] = sources;
  const found: number[] = [];
  for (let layer = 0; layer < first.layers; layer++) {
    for (let head = 0; head < first.heads; head++) {
      const [a, b] = sources.map((source) => oneHead(source, { ...state, layer }, head));
      const [x, y] = [a.series[0].weights, b.series[0].weights];
      let sum = 0;
      for (let i = 0; i < x.length; i++) sum += Math.abs((y[i] || 0) - (x[i] || 0));
      found.push(a.rows.length ? sum / 2 / a.rows.length : 0);
    }
  }
  return found;
}
