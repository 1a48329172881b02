// The selected head and its label, the weights of one token (the strongest first), the legend.
import { useMemo } from "preact/hooks";
import { headColour } from "../colours";
import type { Palette } from "../palette";
import { uniformPicture, type Picture, unitName } from "../compose";
import type { ViewProps } from "../context";
import { labelText } from "../labels";
import { columnFormat, formatExact, formatPercent, formatWeight } from "../numbers";
import type { HeadLabel } from "../payload";
import { keepOf } from "../state";
import { isolate, shorten } from "../text";
import { type Arcs, edgesOfUnit, type ArcWeight, weightAlongArcs } from "../trees";
import { meanWeights } from "./HeadView";
import { fadedUnits, largestLine, lineStyle } from "./lines";

const MAX_ROWS = 60;
const MAX_SERIES = 16;

export function Details(props: ViewProps) {
  const { picture, arcs, selection, palette, state } = props;
  return (
    <aside class="details" aria-label="Weights of a token">
      {!selection && <HeadCard {...props} />}
      {selection ? <TokenWeights {...props} selection={selection} /> : <p class="note">Hover over a token, or move to it with the keyboard, to see its weights. Click or press Enter to pin it.</p>}
      {!selection && <Legend picture={picture} arcs={arcs} palette={palette} special={state.special} lines={state.view === "head"} />}
      {selection && <HeadCard {...props} />}
    </aside>
  );
}

/** What the selected heads do, as far as it was measured, and what a label needs. */
function HeadCard({ state, source, picture }: ViewProps) {
  const labels = state.across === "one" ? state.heads.flatMap((head) => source.labels(state.layer, head)) : [];
  const { labelling } = source.run;
  const [summary, ...rest] = labelling.split(". ");
  return (
    <>
      <h2>{picture.series.length === 1 ? `Head ${picture.series[0].name}`.replace(/^Head (?=\D)/, "") : `${picture.series.length} heads of layer ${source.layerNumber(state.layer)}`}</h2>
      <Labels labels={labels} named={state.heads.length > 1} />
      {!labels.length && labelling && <p class="note">No label: no function was found that is clear enough.</p>}
      {labelling && (
        <details class="labelling">
          <summary>{summary.replace(/ \(.*/, "")}</summary>
          <p class="note">{rest.join(". ")}</p>
        </details>
      )}
    </>
  );
}

function TokenWeights({ picture, arcs, selection, palette, state }: ViewProps & { selection: NonNullable<ViewProps["selection"]> }) {
  const isFrom = selection.side === "from";
  const means = meanWeights(picture, selection);
  const positions = isFrom ? picture.columns : picture.rows;
  const unit = (isFrom ? picture.rows : picture.columns)[selection.position];
  const token = picture.units[unit];
  const order = means.map((_, position) => position).sort((a, b) => Math.abs(means[b] || 0) - Math.abs(means[a] || 0) || a - b);
  const series = picture.series.slice(0, MAX_SERIES);
  const at = (position: number) => (isFrom ? selection.position * picture.columns.length + position : position * picture.columns.length + selection.position);
  const best = order[0];
  const meanFormat = columnFormat(largest(means), picture.step);
  const formats = series.map(({ all }) => columnFormat(largest(order.map((position) => all[at(position)])), picture.step));
  const kept = (position: number) => series.some(({ weights }) => weights[at(position)] === weights[at(position)]);
  return (
    <>
      <h2>
        {isFrom ? "from " : "to "}
        <bdi>{shorten(unitName(token), 40)}</bdi> <span class="index">token {token.tokens.join(", ")}</span>
      </h2>
      <p class="spoken" role="status">
        {best !== undefined && `${isolate(unitName(token))}: ${isFrom ? "strongest to" : "strongest from"} ${isolate(unitName(picture.units[positions[best]]))}, ${formatWeight(means[best], picture.step)}`}
      </p>
      {edgesOfUnit(arcs, unit, picture).map((line) => <p class="note" key={line}><bdi>{line}</bdi></p>)}
      <div class="scroll" tabIndex={0} role="region" aria-label="Weights as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">{isFrom ? "to" : "from"}</th>
              {series.length > 1 && <th scope="col">mean</th>}
              {series.map(({ name, short, colour }) => (
                <th scope="col" key={name} title={name}>
                  <i class="swatch" style={{ background: headColour(palette, colour) }} />
                  {short}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.slice(0, MAX_ROWS).map((position) => (
              <tr key={position} class={kept(position) ? undefined : "left-out"}>
                <th scope="row" title={unitName(picture.units[positions[position]])}>
                  <span class="index">{picture.units[positions[position]].tokens[0]}</span> <bdi>{shorten(unitName(picture.units[positions[position]]), 40)}</bdi>
                </th>
                {series.length > 1 && <td title={formatExact(means[position], picture.step)}>{meanFormat(means[position])}</td>}
                {series.map(({ name, all }, index) => (
                  <td key={name} title={formatExact(all[at(position)], picture.step)}>{formats[index](all[at(position)])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {series.length > 4 && <p class="note">{series.length} heads: scroll the table sideways for all columns.</p>}
      {keepOf(state) !== "all" && order.some((position) => !kept(position)) && <p class="note">Rows in grey have no line: they are not among the weights kept.</p>}
      {order.length > MAX_ROWS && <p class="note">{MAX_ROWS} strongest of {order.length}; all are in the export.</p>}
      {picture.series.length > MAX_SERIES && <p class="note">Columns for {MAX_SERIES} of {picture.series.length} heads.</p>}
    </>
  );
}

function largest(values: number[]): number {
  return values.reduce((max, value) => Math.max(max, Math.abs(value) || 0), 0);
}

const MAX_LABELS = 3; // the others are folded

/** Labels of the selected heads and the evidence for them; of many the first, the others on request. */
export function Labels({ labels, named = false }: { labels: HeadLabel[]; named?: boolean }) {
  if (!labels.length) return null;
  const first = labels.length > MAX_LABELS + 1 ? labels.slice(0, MAX_LABELS) : labels;
  const others = labels.slice(first.length);
  return (
    <>
      <LabelList labels={first} named={named} />
      {others.length > 0 && (
        <details class="labelling">
          <summary>{others.length} more labels</summary>
          <LabelList labels={others} named={named} />
        </details>
      )}
    </>
  );
}

function LabelList({ labels, named }: { labels: HeadLabel[]; named: boolean }) {
  const heads = [...new Set(labels.map(({ layer, head }) => `${layer + 1}-${head + 1}`))];
  return (
    <dl class={!named && heads.length === 1 ? "labels alone" : "labels"} aria-label="Labels of the selected heads">
      {heads.map((name) => [
        <dt key={name}>{name}</dt>,
        ...labels.filter(({ layer, head }) => `${layer + 1}-${head + 1}` === name).map((label) => (
          <dd key={`${label.label} ${label.evidence}`}>
            <b>{labelText(label)}</b> <span class="note">{label.evidence}</span>
          </dd>
        )),
      ])}
    </dl>
  );
}

/** The legend: in lines colour is the head and width the weight, in cells colour is the weight. */
export function Legend({ picture, arcs, palette, special, lines }: { picture: Picture; arcs: Arcs[]; palette: Palette; special: string; lines: boolean }) {
  const max = useMemo(() => (lines ? largestLine(picture, fadedUnits(picture, special)) : 0), [picture, special, lines]);
  const colour = picture.signed ? palette.above[3] : headColour(palette, picture.series[0]?.colour ?? 0);
  return (
    <ul class="legend" aria-label="Colours">
      {picture.signed && <li class="strengths"><i class="swatch" style={{ background: palette.above[3] }} />positive</li>}
      {picture.signed && <li class="strengths"><i class="swatch" style={{ background: palette.below[3] }} />negative</li>}
      {!picture.signed && lines && picture.series.slice(0, MAX_SERIES).map(({ name, colour: index }) => (
        <li key={name} class={picture.series.length === 1 ? "alone" : undefined}>
          <i class="swatch" style={{ background: headColour(palette, index) }} />
          {name}
        </li>
      ))}
      <li class="strengths">
        {lines ? <>line: {strengthSamples(max).map(([weight, strength]) => <span class="sample" key={weight}><i style={sampleStyle(lineStyle(strength, colour, palette, 24))} />{weight}</span>)}</> : !picture.signed && <>cell: 0 <i class="ramp" /> the head's largest weight</>}
      </li>
      {lines && special === "fade" && <li class="strengths"><i class="stroke" style={{ borderTop: `1.5px solid ${palette.muted}`, opacity: 0.5 }} /> to or from a special token</li>}
      {arcLegend(arcs, palette)}
    </ul>
  );
}

/** Weights and strengths of the lines of a legend. */
export function strengthSamples(max: number): [string, number][] {
  return [0.1, 0.5, 1].map((strength) => [formatWeight(strength * max), strength]);
}

function sampleStyle({ colour, width }: { colour: string; width: number }): string {
  return `border-top: ${width.toFixed(1)}px solid ${colour}`;
}

function arcLegend(arcs: Arcs[], palette: Palette) {
  return arcs.map(({ tree, colour }) => (
    <li class="strengths" key={tree.name}>
      <i class="stroke" style={{ borderTop: `2px ${tree.directed ? "solid" : "dashed"} ${colour(palette)}` }} /> {tree.name}, {tree.description}
    </li>
  ));
}

export function ShownWeight(props: ViewProps) {
  const { picture, arcs, source, state } = props;
  const total = picture.signed ? "of the absolute weight of these rows" : "of the weight of these rows";
  const attentionArcs = source.run.quantities[state.quantity].name === "attention" ? arcs : [];
  const uniform = useMemo(() => (attentionArcs.length ? uniformPicture(state, source) : null), [picture, attentionArcs.length > 0]);
  return (
    <>
      <p class="shown" role="status">
        {filterText(state)}. Shown: <b>{formatPercent(picture.fraction)}</b> {total}
        {picture.renormalised ? "; rows renormalised" : ""}
      </p>
      {uniform && attentionArcs.map((tree) => <ArcWeights key={tree.tree.name} arcs={tree} relation={state.relation} picture={picture} uniform={uniform} />)}
    </>
  );
}

/** Which weights are shown, as a clause. */
export function filterText(state: ViewProps["state"]): string {
  const kept = {
    all: "All weights",
    mass: `The strongest ${Math.round(100 * state.mass)} % of each token's weight`,
    threshold: `Weights of at least ${state.threshold}`,
    top: state.top === 1 ? "The strongest weight of each token" : `The ${state.top} strongest weights of each token`,
  }[keepOf(state)];
  const special = { fade: state.view === "head" ? ", special tokens faded" : "", show: "", hide: ", special tokens hidden", renormalise: ", special tokens hidden" }[state.special];
  return kept + special;
}

/** The mean weight along the arcs of a tree, and what uniform attention over the visible tokens gives; both unfiltered. */
function ArcWeights({ arcs, relation, picture, uniform }: { arcs: Arcs; relation: string; picture: Picture; uniform: Picture }) {
  const [model, baseline] = useMemo(() => [weightAlongArcs(arcs, picture), weightAlongArcs(arcs, uniform)], [arcs, picture, uniform]);
  if (!model || !baseline) return null;
  const mean = ({ forward, back }: ArcWeight) => formatPercent((forward + back) / 2);
  const [modelText, baselineText] = arcs.tree.directed
    ? [
        <>dependent to governor <b>{formatPercent(model.forward)}</b>, governor to dependent <b>{formatPercent(model.back)}</b></>,
        `${formatPercent(baseline.forward)} and ${formatPercent(baseline.back)}`,
      ]
    : [<b>{mean(model)}</b>, mean(baseline)];
  const named = arcs.tree.directed && relation ? `${relation} arcs` : "arcs";
  return <p class="shown arc-weights">Mean weight along the {model.edges} {named} of {arcs.tree.name}: {modelText} (uniform attention: {baselineText})</p>;
}
