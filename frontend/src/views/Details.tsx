// The numbers of one token: every target (or source) with its weight in each series, the strongest first.
import { useMemo } from "preact/hooks";
import { headColour, type Palette } from "../colours";
import { evenly, type Picture } from "../compose";
import type { ViewProps } from "../context";
import { percent, weight } from "../numbers";
import type { HeadLabel } from "../payload";
import { type Arcs, edgesOfUnit, type Followed, followed } from "../trees";
import { meanWeights } from "./HeadView";

const MOST_ROWS = 60;
const MOST_SERIES = 16;

export function Details(props: ViewProps) {
  const { picture, arcs, chosen, palette, state, source } = props;
  const labels = state.across === "one" ? state.heads.flatMap((head) => source.labels(state.layer, head)) : [];
  if (!chosen) {
    return (
      <aside class="details" aria-label="Weights of a token">
        <h2>Weights</h2>
        <p class="note">Point at a token, or move to it with the keyboard, to read its weights. Click or Enter keeps it.</p>
        <Legend picture={picture} arcs={arcs} palette={palette} lines={state.view === "head"} />
        <Labels labels={labels} />
      </aside>
    );
  }
  const means = meanWeights(picture, chosen);
  const places = chosen.side === "from" ? picture.columns : picture.rows;
  const unit = (chosen.side === "from" ? picture.rows : picture.columns)[chosen.place];
  const token = picture.units[unit];
  const order = means.map((_, place) => place).sort((a, b) => Math.abs(means[b] || 0) - Math.abs(means[a] || 0) || a - b);
  const series = picture.series.slice(0, MOST_SERIES);
  const at = (place: number) => (chosen.side === "from" ? chosen.place * picture.columns.length + place : place * picture.columns.length + chosen.place);
  const best = order[0];
  return (
    <aside class="details" aria-label="Weights of a token">
      <h2>
        {chosen.side === "from" ? "from " : "to "}
        <bdi>{token.text}</bdi>
      </h2>
      <p class="spoken" role="status">
        {best !== undefined && `${token.text}: ${chosen.side === "from" ? "most to" : "most from"} ${picture.units[places[best]].text}, ${weight(means[best])}`}
      </p>
      {edgesOfUnit(arcs, unit, picture).map((line) => <p class="note" key={line}><bdi>{line}</bdi></p>)}
      <div class="scroll" tabIndex={0} role="region" aria-label="Weights as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">{chosen.side === "from" ? "to" : "from"}</th>
              {series.length > 1 && <th scope="col">mean</th>}
              {series.map((one) => (
                <th scope="col" key={one.name} title={one.name}>
                  <i class="swatch" style={{ background: headColour(palette, one.colour) }} />
                  {one.short}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.slice(0, MOST_ROWS).map((place) => (
              <tr key={place}>
                <th scope="row">
                  <bdi>{picture.units[places[place]].text}</bdi>
                </th>
                {series.length > 1 && <td>{weight(means[place])}</td>}
                {series.map((one) => (
                  <td key={one.name}>{weight(one.weights[at(place)])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {order.length > MOST_ROWS && <p class="note">The {MOST_ROWS} strongest of {order.length}; export has all.</p>}
      {picture.series.length > MOST_SERIES && <p class="note">Columns for {MOST_SERIES} of {picture.series.length} heads.</p>}
      <Labels labels={labels} />
    </aside>
  );
}

/** What analyses found the chosen heads to do, and on what evidence. */
export function Labels({ labels }: { labels: HeadLabel[] }) {
  if (!labels.length) return null;
  const heads = [...new Set(labels.map(({ layer, head }) => `${layer + 1}-${head + 1}`))];
  return (
    <dl class="labels" aria-label="What these heads do">
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

/** What colours mean: in lines colour is head and strength is weight, in cells colour is weight. */
export function Legend({ picture, arcs, palette, lines }: { picture: Picture; arcs: Arcs[]; palette: Palette; lines: boolean }) {
  if (picture.signed) {
    return (
      <ul class="legend" aria-label="Colours">
        <li class="strengths"><i class="swatch" style={{ background: palette.more[3] }} />more than 0</li>
        <li class="strengths"><i class="swatch" style={{ background: palette.less[3] }} />less than 0</li>
        {trees(arcs, palette)}
      </ul>
    );
  }
  return (
    <ul class="legend" aria-label="Colours">
      {lines && picture.series.slice(0, MOST_SERIES).map((one) => (
        <li key={one.name} class={picture.series.length === 1 ? "alone" : undefined}>
          <i class="swatch" style={{ background: headColour(palette, one.colour) }} />
          {one.name}
        </li>
      ))}
      <li class="strengths">
        {lines ? <>line: weaker <i class="ramp strokes" /> stronger weight</> : <>cell: 0 <i class="ramp" /> the head's largest weight</>}
      </li>
      {trees(arcs, palette)}
    </ul>
  );
}

function trees(arcs: Arcs[], palette: Palette) {
  return arcs.map(({ tree, colour }) => (
    <li class="strengths" key={tree.name}>
      <i class="stroke" style={{ borderTop: `2px ${tree.directed ? "solid" : "dashed"} ${colour(palette)}` }} /> {tree.name}, {tree.about}
    </li>
  ));
}

export function Share({ picture, arcs, source, state }: ViewProps) {
  const whole = picture.signed ? "of the sizes of these rows" : "of the weight of these rows";
  const along = source.run.quantities[state.quantity].name === "attention" ? arcs : [];
  const even = useMemo(() => (along.length ? evenly(state, source) : null), [picture, along.length > 0]);
  return (
    <>
      <p class="share" role="status">
        Selected: <b>{percent(picture.share)}</b> {whole}
        {picture.renormalised ? ", rows then scaled to 1" : ""}
      </p>
      {even && along.map((one) => <Along key={one.tree.name} arcs={one} picture={picture} even={even} filtered={state.keep !== "all"} />)}
    </>
  );
}

/** The number behind the arcs: what goes along them, beside what would if all that a token can see had the same share. */
function Along({ arcs, picture, even, filtered }: { arcs: Arcs; picture: Picture; even: Picture; filtered: boolean }) {
  const [found, chance] = useMemo(() => [followed(arcs, picture), followed(arcs, even)], [arcs, picture, even]);
  if (!found || !chance) return null;
  const both = ({ forward, back }: Followed) => percent((forward + back) / 2);
  const [ways, evenWays] = arcs.tree.directed
    ? [
        <>word to head <b>{percent(found.forward)}</b>, head to word <b>{percent(found.back)}</b></>,
        `${percent(chance.forward)} and ${percent(chance.back)}`,
      ]
    : [<b>{both(found)}</b>, both(chance)];
  return <p class="share along">Mean weight along the {found.edges} arcs of {arcs.tree.name}: {ways} (even attention{filtered && ", unfiltered"}: {evenWays})</p>;
}
