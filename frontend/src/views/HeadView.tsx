// Lines between tokens: strength is the weight, colour the head. A hovered token shows its weights as numbers.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Scale } from "../colours";
import type { Palette } from "../palette";
import type { Picture } from "../compose";
import { type TokenSelection, pin, type ViewProps } from "../context";
import { paint } from "../figure";
import { formatPercent, formatWeight } from "../numbers";
import type { Pen } from "../pen";
import { type Arcs, drawArcs, gutterWidth } from "../trees";
import { drawLines, lineCutoff, type Geometry, type Span } from "./lines";

const LIST_WIDTH = { narrow: 116, wide: 190, squeezed: 92 };

const MAX_RENDERED_TOKENS = 48; // of longer inputs only the tokens on screen are rendered
const MARGIN = 12; // tokens rendered beyond the screen

export function HeadView(props: ViewProps) {
  const { picture, arcs, palette, width, selection, state, update, hover, setFigure } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = useRef<HTMLDivElement>(null);
  const count = Math.max(picture.rows.length, picture.columns.length);
  const step = count > 150 ? 18 : 22;
  const narrow = width < 560;
  // The first tree is drawn next to the attending tokens, the second next to the attended ones.
  const gutters = arcs.slice(0, 2).map((tree) => gutterWidth(tree, narrow));
  const [left, right] = [gutters[0] ?? 0, gutters[1] ?? 0];
  const side = left ? tokenListWidth(picture, narrow) : narrow ? LIST_WIDTH.narrow : LIST_WIDTH.wide;
  const between = Math.max(70, Math.min(560, width - 2 * side - left - right));
  const unit = selection ? (selection.side === "from" ? picture.rows : picture.columns)[selection.position] : -1;
  const span = useSpan(lines, count, step);
  const cutoff = useMemo(() => lineCutoff(picture, selection, span), [picture, selection, span]);
  const numbers = useMemo(() => selection && meanWeights(picture, selection), [picture, selection]);
  const scale = useMemo(() => new Scale(palette, (numbers ?? []).reduce((max, number) => Math.max(max, Math.abs(number) || 0), 0)), [palette, numbers]);
  const height = step * (span.last - span.first);

  useLayoutEffect(() => {
    const visible: Geometry = { left: 0, right: between, top: -span.first * step, step };
    paint(canvas.current!, { width: between, height, draw: (pen) => drawLines(pen, picture, visible, palette, selection, span, cutoff.threshold) });
  }, [picture, palette, selection, span, between, step]);
  useLayoutEffect(() => {
    const everything: Span = { first: 0, last: count };
    const position: Geometry = { left: left + side, right: left + side + between, top: 8, step };
    const total = left + 2 * side + between + right;
    setFigure({
      width: total,
      height: step * count + 16,
      draw: (pen) => {
        if (arcs[0]) drawArcs(pen, arcs[0], picture.rows, { tokens: left, width: left, away: -1, top: 8, step }, palette, unit);
        if (arcs[1]) drawArcs(pen, arcs[1], picture.columns, { tokens: total - right, width: right, away: 1, top: 8, step }, palette, unit);
        drawLines(pen, picture, position, palette, selection, everything, lineCutoff(picture, selection, everything).threshold);
        picture.rows.forEach((unit, row) => pen.text(left + side - 6, 8 + (row + 0.5) * step, picture.units[unit].text, palette.foreground, 13, "end"));
        picture.columns.forEach((unit, column) => pen.text(left + side + between + 6, 8 + (column + 0.5) * step, picture.units[unit].text, palette.foreground, 13, "start"));
      },
    });
  });

  const list = (kind: "from" | "to") => (
    <TokenList
      kind={kind}
      picture={picture}
      span={span}
      step={step}
      selection={selection}
      pinnedToken={state.side === kind ? state.token : -1}
      numbers={selection && selection.side !== kind ? numbers : null}
      scale={scale}
      hover={hover}
      choose={(position) => update(pin({ side: kind, position }, state, picture))}
    />
  );
  return (
    <section class="head-view" aria-label="Head view">
      <p class="note hint">
        {cutoff.drawn < cutoff.all &&
          `Lines: ${cutoff.drawn.toLocaleString("en")} strongest of ${cutoff.all.toLocaleString("en")} weights of the tokens on screen (${formatPercent(cutoff.fraction)} of their weight). A hovered token shows all its weights.`}
      </p>
      <div class="lines" style={{ gridTemplateColumns: `${left}px ${side}px ${between}px ${side}px ${right}px` }} onMouseLeave={() => hover(null)}>
        <span />
        <b class="side from">from</b>
        <span />
        <b class="side to">to</b>
        <span />
        <ArcGutter arcs={arcs[0]} positions={picture.rows} width={left} away={-1} span={span} step={step} palette={palette} unit={unit} />
        {list("from")}
        <div ref={lines} style={{ height: `${step * count}px` }}>
          <canvas ref={canvas} style={{ width: `${between}px`, height: `${height}px`, marginTop: `${span.first * step}px` }} role="img" aria-label={describe(picture)} />
        </div>
        {list("to")}
        <ArcGutter arcs={arcs[1]} positions={picture.columns} width={right} away={1} span={span} step={step} palette={palette} unit={unit} />
      </div>
    </section>
  );
}

/** The width of a token list next to arcs: just enough for the longest token and a number. */
function tokenListWidth(picture: Picture, narrow: boolean): number {
  const longest = Math.max(...picture.units.map((unit) => unit.text.length));
  return Math.max(84, Math.min(narrow ? LIST_WIDTH.squeezed : LIST_WIDTH.wide, 8.2 * longest + 70));
}

interface ArcGutterProps {
  arcs: Arcs | undefined;
  positions: number[];
  width: number;
  away: 1 | -1;
  span: Span;
  step: number;
  palette: Palette;
  unit: number;
}

/** The arcs of one tree next to a list of tokens. */
function ArcGutter({ arcs, positions, width, away, span, step, palette, unit }: ArcGutterProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = step * (span.last - span.first);
  useLayoutEffect(() => {
    const gutter = { tokens: away < 0 ? width : 0, width, away, top: -span.first * step, step };
    if (canvas.current && arcs) paint(canvas.current, { width, height, draw: (pen: Pen) => drawArcs(pen, arcs, positions, gutter, palette, unit) });
  }, [arcs, positions, width, span, step, palette, unit]);
  if (!arcs) return <span />;
  return (
    <div>
      <canvas ref={canvas} class="arcs" style={{ width: `${width}px`, height: `${height}px`, marginTop: `${span.first * step}px` }} role="img" aria-label={`${arcs.edges.length} arcs of ${arcs.tree.name}, ${arcs.tree.description}`} />
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

/** The mean over the series shown, from or to the selected token. */
export function meanWeights(picture: Picture, selection: TokenSelection): number[] {
  const columns = picture.columns.length;
  const others = selection.side === "from" ? columns : picture.rows.length;
  return Array.from({ length: others }, (_, other) => {
    const position = selection.side === "from" ? selection.position * columns + other : other * columns + selection.position;
    let [sum, count] = [0, 0];
    for (const { weights } of picture.series) {
      if (weights[position] === weights[position]) {
        sum += weights[position];
        count++;
      }
    }
    return count ? sum / picture.series.length : NaN;
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
  scale: Scale;
  hover: (selection: TokenSelection | null) => void;
  choose: (position: number) => void;
}

function TokenList({ kind, picture, span, step, selection, pinnedToken, numbers, scale, hover, choose }: ListProps) {
  const positions = kind === "from" ? picture.rows : picture.columns;
  const selected = selection?.side === kind ? selection.position : -1;
  const positionOf = (event: Event) => Number((event.target as HTMLElement).closest<HTMLElement>("[data-position]")?.dataset.position ?? -1);
  const focus = (list: Element | null | undefined, position: number) => list?.querySelector<HTMLElement>(`[data-position="${position}"]`)?.focus();
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -MARGIN, End: MARGIN }[event.key];
    const list = event.currentTarget as HTMLElement;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const other = event.key === "ArrowRight" ? "to" : "from";
      const last = (other === "to" ? picture.columns : picture.rows).length - 1;
      focus(list.parentElement!.querySelector(`ol.${other}`), Math.min(positionOf(event), last));
    } else if (event.key === "Escape") hover(null);
    else if (by !== undefined) focus(list, Math.max(0, Math.min(positions.length - 1, positionOf(event) + by)));
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
        const shaded = number !== undefined && number === number;
        const style = { height: `${step}px`, ...(shaded ? { background: scale.css(number), color: scale.textColour(number) } : {}) };
        const { text, special, segment } = picture.units[unit];
        return (
          <li key={unit} aria-setsize={positions.length} aria-posinset={position + 1}>
            <button
              type="button"
              data-position={position}
              style={style}
              tabIndex={(selected >= span.first && selected < span.last ? selected : span.first) === position ? 0 : -1}
              aria-pressed={pinnedToken === unit}
              class={`${selected === position ? "selected" : ""} ${special ? "special" : ""} segment-${segment}`}
              title={text}
            >
              <bdi>{text}</bdi>
              {number !== undefined && <span class="number">{formatWeight(number)}</span>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}
