// Tables for two runs: the largest differences, or the strongest weights of each if they cannot be compared.
import type { Picture } from "../compose";
import { formatWeight } from "../numbers";
import { difference, joinTexts } from "./differences";

const MAX_ROWS = 8;

function strongestOf(weights: Float32Array, sign: -1 | 0 | 1): number[] {
  const positions = Array.from(weights.keys()).filter((position) => (sign ? weights[position] * sign > 0 : weights[position] === weights[position]));
  return positions.sort((x, y) => Math.abs(weights[y]) - Math.abs(weights[x]) || x - y).slice(0, MAX_ROWS);
}

function ends(picture: Picture, position: number): [string, string] {
  const width = picture.columns.length;
  return [picture.units[picture.rows[Math.trunc(position / width)]].text, picture.units[picture.columns[position % width]].text];
}

/** The largest increases and decreases; with the tokens of both inputs where they differ. */
export function LargestDifferences({ pictures, names }: { pictures: Picture[]; names: string[] }) {
  const changes = difference(pictures);
  const [a, b] = pictures;
  const signs: [1 | -1, string][] = [[1, "More"], [-1, "Less"]];
  return (
    <div class="patterns changes">
      {signs.map(([sign, word]) => (
        <div key={word} tabIndex={0} role="region" aria-label={`${word} attention in ${names[1]}`}><table>
          <caption>{word} attention in {names[1]}</caption>
          <thead>
            <tr>
              <th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th><th scope="col">difference</th>
            </tr>
          </thead>
          <tbody>
            {strongestOf(changes, sign).map((position) => {
              const [[from, to], [otherFrom, otherTo]] = [ends(a, position), ends(b, position)];
              return (
                <tr key={position}>
                  <th scope="row"><bdi>{joinTexts(from, otherFrom)}</bdi></th>
                  <th scope="row"><bdi>{joinTexts(to, otherTo)}</bdi></th>
                  <td>{formatWeight(a.series[0].weights[position], a.step)}</td>
                  <td>{formatWeight(b.series[0].weights[position], b.step)}</td>
                  <td>{sign > 0 ? "+" : "−"}{formatWeight(Math.abs(changes[position]))}</td>
                </tr>
              );
            })}
          </tbody>
        </table></div>
      ))}
    </div>
  );
}

/** The strongest weights of each run. */
export function StrongestWeights({ pictures, names }: { pictures: Picture[]; names: string[] }) {
  return (
    <div class="patterns">
      {pictures.map((picture, index) => (
        <table key={index}>
          <caption>{names[index]}</caption>
          <thead>
            <tr><th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">weight</th></tr>
          </thead>
          <tbody>
            {strongestOf(picture.series[0].weights, 0).map((position) => {
              const [from, to] = ends(picture, position);
              return (
                <tr key={position}>
                  <th scope="row"><bdi>{from}</bdi></th><th scope="row"><bdi>{to}</bdi></th><td>{formatWeight(picture.series[0].weights[position], picture.step)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ))}
    </div>
  );
}
