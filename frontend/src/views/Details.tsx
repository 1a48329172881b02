// The weights of one token: every target (or source) in each series, the strongest first.
import { useMemo } from "preact/hooks";
import { headColour } from "../colours";
import type { Palette } from "../palette";
import { uniformPicture, type Picture } from "../compose";
import type { ViewProps } from "../context";
import { formatPercent, formatWeight } from "../numbers";
import type { HeadLabel } from "../payload";
import { type Arcs, edgesOfUnit, type ArcWeight, weightAlongArcs } from "../trees";
import { meanWeights } from "./HeadView";

const MAX_ROWS = 60;
const MAX_SERIES = 16;

export function Details(props: ViewProps) {
  const { picture, arcs, selection, palette, state, source } = props;
  const labels = state.across === "one" ? state.heads.flatMap((head) => source.labels(state.layer, head)) : [];
  if (!selection) {
    return (
      <aside class="details" aria-label="Weights of a token">
        <h2>Weights</h2>
        <p class="note">Hover over a token, or move to it with the keyboard, to see its weights. Click or press Enter to pin it.</p>
        <Legend picture={picture} arcs={arcs} palette={palette} lines={state.view === "head"} />
        <Labels labels={labels} />
      </aside>
    );
  }
  const means = meanWeights(picture, selection);
  const positions = selection.side === "from" ? picture.columns : picture.rows;
  const unit = (selection.side === "from" ? picture.rows : picture.columns)[selection.position];
  const token = picture.units[unit];
  const order = means.map((_, position) => position).sort((a, b) => Math.abs(means[b] || 0) - Math.abs(means[a] || 0) || a - b);
  const series = picture.series.slice(0, MAX_SERIES);
  const at = (position: number) => (selection.side === "from" ? selection.position * picture.columns.length + position : position * picture.columns.length + selection.position);
  const best = order[0];
  return (
    <aside class="details" aria-label="Weights of a token">
      <h2>
        {selection.side === "from" ? "from " : "to "}
        <bdi>{token.text}</bdi>
      </h2>
      <p class="spoken" role="status">
        {best !== undefined && `${token.text}: ${selection.side === "from" ? "strongest to" : "strongest from"} ${picture.units[positions[best]].text}, ${formatWeight(means[best])}`}
      </p>
      {edgesOfUnit(arcs, unit, picture).map((line) => <p class="note" key={line}><bdi>{line}</bdi></p>)}
      <div class="scroll" tabIndex={0} role="region" aria-label="Weights as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">{selection.side === "from" ? "to" : "from"}</th>
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
              <tr key={position}>
                <th scope="row">
                  <bdi>{picture.units[positions[position]].text}</bdi>
                </th>
                {series.length > 1 && <td>{formatWeight(means[position])}</td>}
                {series.map(({ name, weights }) => (
                  <td key={name}>{formatWeight(weights[at(position)])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {order.length > MAX_ROWS && <p class="note">{MAX_ROWS} strongest of {order.length}; all are in the export.</p>}
      {picture.series.length > MAX_SERIES && <p class="note">Columns for {MAX_SERIES} of {picture.series.length} heads.</p>}
      <Labels labels={labels} />
    </aside>
  );
}

/** Labels of the selected heads and the evidence for them. */
export function Labels({ labels }: { labels: HeadLabel[] }) {
  if (!labels.length) return null;
  const heads = [...new Set(labels.map(({ layer, head }) => `${layer + 1}-${head + 1}`))];
  return (
    <dl class="labels" aria-label="Labels of the selected heads">
      {heads.map((name) => [
        <dt key={name}>{name}</dt>,
        ...labels.filter(({ layer, head }) => `${layer + 1}-${head + 1}` === name).map(({ label, evidence }) => (
          <dd key={`${label} ${evidence}`}>
            {label} <span class="note">{evidence}</span>
          </dd>
        )),
      ])}
    </dl>
  );
}

/** The legend: in lines colour is the head and strength the weight, in cells colour is the weight. */
export function Legend({ picture, arcs, palette, lines }: { picture: Picture; arcs: Arcs[]; palette: Palette; lines: boolean }) {
  if (picture.signed) {
    return (
      <ul class="legend" aria-label="Colours">
        <li class="strengths"><i class="swatch" style={{ background: palette.above[3] }} />positive</li>
        <li class="strengths"><i class="swatch" style={{ background: palette.below[3] }} />negative</li>
        {arcLegend(arcs, palette)}
      </ul>
    );
  }
  return (
    <ul class="legend" aria-label="Colours">
      {lines && picture.series.slice(0, MAX_SERIES).map(({ name, colour }) => (
        <li key={name} class={picture.series.length === 1 ? "alone" : undefined}>
          <i class="swatch" style={{ background: headColour(palette, colour) }} />
          {name}
        </li>
      ))}
      <li class="strengths">
        {lines ? <>line: weaker <i class="ramp strokes" /> stronger weight</> : <>cell: 0 <i class="ramp" /> the head's largest weight</>}
      </li>
      {arcLegend(arcs, palette)}
    </ul>
  );
}

function arcLegend(arcs: Arcs[], palette: Palette) {
  return arcs.map(({ tree, colour }) => (
    <li class="strengths" key={tree.name}>
      <i class="stroke" style={{ borderTop: `2px ${tree.directed ? "solid" : "dashed"} ${colour(palette)}` }} /> {tree.name}, {tree.description}
    </li>
  ));
}

export function ShownWeight({ picture, arcs, source, state }: ViewProps) {
  const total = picture.signed ? "of the absolute weight of these rows" : "of the weight of these rows";
  const attentionArcs = source.run.quantities[state.quantity].name === "attention" ? arcs : [];
  const uniform = useMemo(() => (attentionArcs.length ? uniformPicture(state, source) : null), [picture, attentionArcs.length > 0]);
  return (
    <>
      <p class="shown" role="status">
        Shown: <b>{formatPercent(picture.fraction)}</b> {total}
        {picture.renormalised ? "; rows renormalised" : ""}
      </p>
      {uniform && attentionArcs.map((tree) => <ArcWeights key={tree.tree.name} arcs={tree} picture={picture} uniform={uniform} filtered={state.keep !== "all"} />)}
    </>
  );
}

/** The mean weight along the arcs of a tree, and what uniform attention over the visible tokens gives. */
function ArcWeights({ arcs, picture, uniform, filtered }: { arcs: Arcs; picture: Picture; uniform: Picture; filtered: boolean }) {
  const [model, baseline] = useMemo(() => [weightAlongArcs(arcs, picture), weightAlongArcs(arcs, uniform)], [arcs, picture, uniform]);
  if (!model || !baseline) return null;
  const mean = ({ forward, back }: ArcWeight) => formatPercent((forward + back) / 2);
  const [modelText, baselineText] = arcs.tree.directed
    ? [
        <>dependent to governor <b>{formatPercent(model.forward)}</b>, governor to dependent <b>{formatPercent(model.back)}</b></>,
        `${formatPercent(baseline.forward)} and ${formatPercent(baseline.back)}`,
      ]
    : [<b>{mean(model)}</b>, mean(baseline)];
  return <p class="shown arc-weights">Mean weight along the {model.edges} arcs of {arcs.tree.name}: {modelText} (uniform attention{filtered && ", unfiltered"}: {baselineText})</p>;
}
