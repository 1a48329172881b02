// The numbers of one token: every target (or source) with its weight in each series, the strongest first.
import type { Palette } from "../colours";
import { headColour } from "../colours";
import type { Picture } from "../compose";
import type { Chosen } from "../context";
import { percent, weight } from "../numbers";
import { meanWeights } from "./HeadView";

const MOST_ROWS = 60;
const MOST_SERIES = 16;

export function Details({ picture, chosen, palette }: { picture: Picture; chosen: Chosen | null; palette: Palette }) {
  if (!chosen) {
    return (
      <aside class="details" aria-label="Weights of a token">
        <h2>Weights</h2>
        <p class="note">Point at a token, or move to it with the keyboard, to read its weights. Click or Enter keeps it.</p>
        <Legend picture={picture} palette={palette} />
      </aside>
    );
  }
  const means = meanWeights(picture, chosen);
  const places = chosen.side === "from" ? picture.columns : picture.rows;
  const token = picture.units[(chosen.side === "from" ? picture.rows : picture.columns)[chosen.place]];
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
    </aside>
  );
}

export function Legend({ picture, palette }: { picture: Picture; palette: Palette }) {
  if (picture.signed) {
    return (
      <ul class="legend" aria-label="Colours">
        <li class="strengths"><i class="swatch" style={{ background: palette.more[3] }} />more than 0</li>
        <li class="strengths"><i class="swatch" style={{ background: palette.less[3] }} />less than 0</li>
      </ul>
    );
  }
  return (
    <ul class="legend" aria-label="Colours">
      {picture.series.slice(0, MOST_SERIES).map((one) => (
        <li key={one.name}>
          <i class="swatch" style={{ background: headColour(palette, one.colour) }} />
          {one.name}
        </li>
      ))}
      <li class="strengths">
        weaker <i class="ramp" /> stronger
      </li>
    </ul>
  );
}

export function Share({ picture }: { picture: Picture }) {
  const whole = picture.signed ? "of the sizes of these rows" : "of the weight of these rows";
  return (
    <p class="share" role="status">
      Selected: <b>{percent(picture.share)}</b> {whole}
      {picture.renormalised ? ", rows then scaled to 1" : ""}
    </p>
  );
}
