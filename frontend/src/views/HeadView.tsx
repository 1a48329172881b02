// Lines between tokens: width is the weight, colour the head. A hovered token shows its weights as numbers, and those
// of all heads of the layer as strips of cells.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Palette } from "../palette";
import type { Source } from "../source";
import { type Picture, type Unit, unitName } from "../compose";
import { type TokenSelection, pin, type ViewProps } from "../context";
import { paint } from "../figure";
import { columnFormat, formatExact, formatPercent } from "../numbers";
import { FONT, type Pen } from "../pen";
import { fitText, shorten, textWidth } from "../text";
import { type Arcs, drawArcs, gutterWidth, WORD_FONT } from "../trees";
import { drawLines, fadedUnits, lineCutoff, type Geometry, type Span } from "./lines";
import { describeStrip, stripBackground, type Strips, stripsOf } from "./strips";

const LIST_WIDTH = { narrow: 116, wide: 210 };
const TOKEN_FONT = WORD_FONT;
const MAX_TEXT = 60; // signs of a token in the page; its tooltip has the whole text
const MAX_RENDERED_TOKENS = 48; // of longer inputs only the tokens on screen are rendered
const MARGIN = 12; // tokens rendered beyond the screen

export function HeadView(props: ViewProps) {
  const { picture, arcs, palette, width, selection, state, source, update, hover, setFigure } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = useRef<HTMLDivElement>(null);
  const count = Math.max(picture.rows.length, picture.columns.length);
  const step = count > 150 ? 18 : count > 26 ? 22 : 26;
  const narrow = width < 560;
  // The first tree is drawn next to the attending tokens, the second next to the attended ones.
  const [left, right] = [gutterWidth(arcs[0], narrow), gutterWidth(arcs[1], narrow)];
  const side = useMemo(() => listWidth(picture, narrow, source.heads), [picture, narrow, source.heads]);
  const between = Math.max(70, Math.min(420, width - 2 * side - left - right));
  const unit = selection ? (selection.side === "from" ? picture.rows : picture.columns)[selection.position] : -1;
  const span = useSpan(lines, count, step);
  const faded = useMemo(() => fadedUnits(picture, state.special), [picture, state.special]);
  const cutoff = useMemo(() => lineCutoff(picture, selection, span), [picture, selection, span]);
  const numbers = useMemo(() => selection && meanWeights(picture, selection), [picture, selection]);
  const strips = useMemo(() => {
    if (!selection) return null;
    const others = selection.side === "from" ? picture.columns : picture.rows;
    return stripsOf(state, source, picture, selection, others.map((_, position) => position).slice(span.first, span.last));
  }, [picture, selection, span, state.layer]);
  const height = step * (span.last - span.first);

  useLayoutEffect(() => {
    const visible: Geometry = { left: 0, right: between, top: -span.first * step, step };
    paint(canvas.current!, { width: between, height, draw: (pen) => drawLines(pen, picture, visible, { palette, selection, span, threshold: cutoff.threshold, faded }) });
  }, [picture, palette, selection, span, between, step, faded]);
  useLayoutEffect(() => setFigure(headFigure(props, { left, right, side, between, step, faded })));

  const list = (kind: "from" | "to") => (
    <TokenList
      kind={kind}
      picture={picture}
      span={span}
      step={step}
      selection={selection}
      pinnedToken={state.side === kind ? state.token : -1}
      numbers={selection && selection.side !== kind ? numbers : null}
      strips={strips}
      cell={narrow ? 3 : source.heads > 12 ? 5 : 6}
      source={source}
      layer={state.layer}
      palette={palette}
      hover={hover}
      choose={(position) => update(pin({ side: kind, position }, state, picture))}
    />
  );
  const notDrawn = cutoff.all - cutoff.drawn;
  return (
    <section class="head-view" aria-label="Head view">
      {notDrawn > 0 && (
        <p class="note hint">
          {`The ${cutoff.drawn.toLocaleString("en")} strongest of ${cutoff.all.toLocaleString("en")} lines of the tokens on screen are drawn (${formatPercent(cutoff.fraction)} of their weight); ${notDrawn.toLocaleString("en")} are not. A hovered token shows all of its lines.`}
        </p>
      )}
      <div class="lines" style={{ gridTemplateColumns: `${left}px ${side}px ${between}px ${side}px ${right}px` }} onMouseLeave={() => hover(null)}>
        <span />
        <b class="side from">from</b>
        <span />
        <b class="side to">to</b>
        <span />
        <ArcGutter arcs={arcs[0]} units={picture.units} positions={picture.rows} width={left} list={side} away={-1} span={span} step={step} palette={palette} unit={unit} />
        {list("from")}
        <div ref={lines} style={{ height: `${step * count}px` }}>
          <canvas ref={canvas} style={{ width: `${between}px`, height: `${height}px`, marginTop: `${span.first * step}px` }} role="img" aria-label={describe(picture)} />
        </div>
        {list("to")}
        <ArcGutter arcs={arcs[1]} units={picture.units} positions={picture.columns} width={right} list={side} away={1} span={span} step={step} palette={palette} unit={unit} />
      </div>
      {strips && <p class="note strips-note">Cells beside a token: its weight in each of the {source.heads} heads of layer {source.layerNumber(state.layer)}, before filters; beside the token itself, its strongest.</p>}
    </section>
  );
}

/** The text of a token on screen: with the text that an unknown token stands for. */
function tokenText({ text, source }: Unit): string {
  return source ? `${text} ${source}` : text;
}

/** Wide enough for the longest token, a strip of cells and a number, within limits. */
function listWidth(picture: Picture, narrow: boolean, heads: number): number {
  if (narrow) return LIST_WIDTH.narrow;
  const longest = Math.max(...picture.units.slice(0, 600).map((unit) => textWidth(shorten(tokenText(unit), 30), TOKEN_FONT, FONT)));
  return Math.round(Math.max(130, Math.min(LIST_WIDTH.wide + 20, longest + 74 + Math.min(90, 6 * heads))));
}

interface FigureLayout {
  left: number;
  right: number;
  side: number;
  between: number;
  step: number;
  faded: boolean[] | null;
}

/** The drawing for export: tokens, lines, arcs and, of a pinned or hovered token, its highlight and its numbers. */
function headFigure({ picture, arcs, palette, selection }: ViewProps, { left, right, side, between, step, faded }: FigureLayout) {
  const count = Math.max(picture.rows.length, picture.columns.length);
  const everything: Span = { first: 0, last: count };
  const [top, total] = [26, left + 2 * side + between + right];
  const drawList = (pen: Pen, kind: "from" | "to", numbers: number[] | null) => {
    const format = columnFormat(largest(numbers ?? []), picture.step);
    const isFrom = kind === "from";
    const [x, away] = isFrom ? [left + side - 6, -1] : [left + side + between + 6, 1];
    const anchor = isFrom ? "end" : "start";
    pen.text(x, 12, kind, palette.muted, 11, anchor);
    (isFrom ? picture.rows : picture.columns).forEach((index, position) => {
      const y = top + (position + 0.5) * step;
      const name = tokenText(picture.units[index]);
      const isSelected = selection?.side === kind && selection.position === position;
      const text = fitText(name, side - 70, TOKEN_FONT, FONT);
      const wide = textWidth(text, TOKEN_FONT, FONT) * (isSelected ? 1.08 : 1);
      if (isSelected) pen.rect(isFrom ? x - wide - 5 : x - 5, y - step / 2 + 1, wide + 10, step - 2, palette.above[1]);
      const colour = picture.units[index].special && !isSelected ? palette.muted : palette.foreground;
      pen.text(x, y, text, colour, TOKEN_FONT, anchor, false, { bold: isSelected, title: name });
      const number = numbers?.[position];
      if (selection && selection.side !== kind && number !== undefined) pen.text(x + away * (wide + 12), y, format(number), palette.foreground, 11, anchor);
    });
  };
  return {
    width: total,
    height: step * count + top + 8,
    draw: (pen: Pen) => {
      const unit = selection ? (selection.side === "from" ? picture.rows : picture.columns)[selection.position] : -1;
      const numbers = selection && meanWeights(picture, selection);
      const { threshold } = lineCutoff(picture, selection, everything);
      const gutter = (width: number, x: number, away: 1 | -1) => ({ tokens: x, width, away, list: side, top, step });
      if (arcs[0]) drawArcs(pen, arcs[0], picture.units, picture.rows, gutter(left, left + side, -1), palette, unit);
      if (arcs[1]) drawArcs(pen, arcs[1], picture.units, picture.columns, gutter(right, total - right - side, 1), palette, unit);
      drawLines(pen, picture, { left: left + side, right: left + side + between, top, step }, { palette, selection, span: everything, threshold, faded });
      drawList(pen, "from", numbers);
      drawList(pen, "to", numbers);
    },
  };
}

function largest(numbers: number[]): number {
  return numbers.reduce((max, number) => Math.max(max, Math.abs(number) || 0), 0);
}

interface ArcGutterProps {
  arcs: Arcs | undefined;
  units: Unit[];
  positions: number[];
  width: number;
  list: number;
  away: 1 | -1;
  span: Span;
  step: number;
  palette: Palette;
  unit: number;
}

/** The arcs of one tree, from beside the list of tokens to the words themselves. */
function ArcGutter({ arcs, units, positions, width, list, away, span, step, palette, unit }: ArcGutterProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = step * (span.last - span.first);
  const total = width + list;
  useLayoutEffect(() => {
    const gutter = { tokens: away < 0 ? total : 0, width, away, list, top: -span.first * step, step };
    if (canvas.current && arcs) paint(canvas.current, { width: total, height, draw: (pen: Pen) => drawArcs(pen, arcs, units, positions, gutter, palette, unit) });
  }, [arcs, units, positions, width, list, span, step, palette, unit]);
  if (!arcs) return <span />;
  return (
    <div class="gutter">
      <canvas ref={canvas} class="arcs" style={{ width: `${total}px`, height: `${height}px`, marginTop: `${span.first * step}px`, [away < 0 ? "left" : "right"]: 0 }} role="img" aria-label={`${arcs.edges.length} arcs of ${arcs.tree.name}, ${arcs.tree.description}`} />
    </div>
  );
}

/** The range of tokens on screen and a margin; all tokens of short inputs. */
function useSpan(lines: { current: HTMLElement | null }, count: number, step: number): Span {
  const [visible, setVisible] = useState<Span>({ first: 0, last: Math.min(count, 60) });
  useLayoutEffect(() => {
    if (count <= MAX_RENDERED_TOKENS) return undefined;
    const update = () => {
      const { top } = lines.current!.getBoundingClientRect();
      // In steps, so that not every scrolled pixel causes a redraw.
      const first = Math.max(0, Math.floor(-top / step / MARGIN) * MARGIN - MARGIN);
      const last = Math.min(count, Math.ceil((window.innerHeight - top) / step / MARGIN) * MARGIN + MARGIN);
      setVisible((old) => (old.first === first && old.last === last ? old : { first, last: Math.max(first + 1, last) }));
    };
    update();
    window.addEventListener("scroll", update, { capture: true, passive: true });
    window.addEventListener("resize", update);
    return () => {
      window.removeEventListener("scroll", update, { capture: true });
      window.removeEventListener("resize", update);
    };
  }, [count, step]);
  return useMemo(() => (count <= MAX_RENDERED_TOKENS ? { first: 0, last: count } : visible), [count, visible]);
}

function describe(picture: Picture): string {
  return `Lines from ${picture.rows.length} to ${picture.columns.length} tokens for ${picture.series.map(({ name }) => name).join(", ")}`;
}

/** The mean over the series shown, from or to the selected token, before any filter. */
export function meanWeights(picture: Picture, selection: TokenSelection): number[] {
  const columns = picture.columns.length;
  const others = selection.side === "from" ? columns : picture.rows.length;
  return Array.from({ length: others }, (_, other) => {
    const position = selection.side === "from" ? selection.position * columns + other : other * columns + selection.position;
    return picture.series.reduce((sum, { all }) => sum + all[position], 0) / picture.series.length;
  });
}

interface ListProps {
  kind: "from" | "to";
  picture: Picture;
  span: Span;
  step: number;
  selection: TokenSelection | null;
  pinnedToken: number;
  numbers: number[] | null;
  strips: Strips | null;
  cell: number;
  source: Source;
  layer: number;
  palette: Palette;
  hover: (selection: TokenSelection | null) => void;
  choose: (position: number) => void;
}

function TokenList({ kind, picture, span, step, selection, pinnedToken, numbers, strips, cell, source, layer, palette, hover, choose }: ListProps) {
  const positions = kind === "from" ? picture.rows : picture.columns;
  const selected = selection?.side === kind ? selection.position : -1;
  const format = columnFormat(largest(numbers ?? []), picture.step);
  const positionOf = (event: Event) => Number((event.target as HTMLElement).closest<HTMLElement>("[data-position]")?.dataset.position ?? -1);
  const focus = (list: Element | null | undefined, position: number) => list?.querySelector<HTMLElement>(`[data-position="${position}"]`)?.focus();
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -MARGIN, End: MARGIN }[event.key];
    const list = event.currentTarget as HTMLElement;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const other = event.key === "ArrowRight" ? "to" : "from";
      const last = (other === "to" ? picture.columns : picture.rows).length - 1;
      focus(list.parentElement!.querySelector(`ol.${other}`), Math.min(positionOf(event), last));
    } else if (by !== undefined) focus(list, Math.max(0, Math.min(positions.length - 1, positionOf(event) + by)));
    else return;
    event.preventDefault();
  };
  const rendered = positions.slice(span.first, span.last);
  return (
    <ol
      class={`tokens ${kind}`}
      style={{ height: `${step * positions.length}px`, paddingTop: `${span.first * step}px` }}
      aria-label={kind === "from" ? "Tokens that attend" : "Tokens attended to"}
      onMouseOver={(event) => positionOf(event) >= 0 && hover({ side: kind, position: positionOf(event) })}
      onFocusIn={(event) => positionOf(event) >= 0 && hover({ side: kind, position: positionOf(event) })}
      onClick={(event) => positionOf(event) >= 0 && choose(positionOf(event))}
      onKeyDown={move}
    >
      {rendered.map((unit, index) => {
        const position = span.first + index;
        const number = numbers?.[position];
        const token = picture.units[unit];
        const strip = selected === position ? strips?.own : numbers ? strips?.others.get(position) : undefined;
        return (
          <li key={unit} aria-setsize={positions.length} aria-posinset={position + 1}>
            <button
              type="button"
              data-position={position}
              style={{ height: `${step}px` }}
              tabIndex={(selected >= span.first && selected < span.last ? selected : span.first) === position ? 0 : -1}
              aria-pressed={pinnedToken === unit}
              class={`${selected === position ? "selected" : ""} ${token.special ? "special" : ""} ${token.source ? "unknown" : ""} segment-${token.segment}`}
              title={`${unitName(token)} · token ${token.tokens.join(", ")}${token.source ? " · not in the model's vocabulary" : ""}${number === undefined ? "" : ` · ${formatExact(number, picture.step)}`}`}
            >
              <bdi>{shorten(token.text, MAX_TEXT)}</bdi>
              {token.source && <small class="source"><bdi>{shorten(token.source, MAX_TEXT)}</bdi></small>}
              {strip && <i class={selected === position ? "strip own" : "strip"} title={describeStrip(strip, source, layer, picture.step)} style={{ width: `${cell * strip.length}px`, background: stripBackground(strip, strips!.max, palette, cell) }} />}
              {number !== undefined && <span class="number">{format(number)}</span>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}

