// Tables for two runs: the largest differences, or the strongest weights of each if they cannot be compared.
import type { Picture } from "../compose";
import { formatWeight } from "../numbers";
import { difference, joinTexts } from "./differences";

const MAX_ROWS = 12;

function strongestOf(weights: Float32Array): number[] {
  return Array.from(weights.keys()).sort((x, y) => (Math.abs(weights[y]) || 0) - (Math.abs(weights[x]) || 0)).slice(0, MAX_ROWS);
}

function ends(picture: Picture, position: number): [string, string] {
  const width = picture.columns.length;
  return [picture.units[picture.rows[Math.trunc(position / width)]].text, picture.units[picture.columns[position % width]].text];
}

/** The largest differences; with the tokens of both inputs where they differ. */
export function LargestDifferences({ pictures, names }: { pictures: Picture[]; names: string[] }) {
  const changes = difference(pictures);
  const [a, b] = pictures;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th><th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          {strongestOf(changes).map((position) => {
            const [[from, to], [otherFrom, otherTo]] = [ends(a, position), ends(b, position)];
            return (
              <tr key={position}>
                <th scope="row"><bdi>{joinTexts(from, otherFrom)}</bdi></th>
                <th scope="row"><bdi>{joinTexts(to, otherTo)}</bdi></th>
                <td>{formatWeight(a.series[0].weights[position])}</td>
                <td>{formatWeight(b.series[0].weights[position])}</td>
                <td>{changes[position] > 0 ? "+" : ""}{formatWeight(changes[position])}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The strongest weights of each run. */
export function StrongestWeights({ pictures, names }: { pictures: Picture[]; names: string[] }) {
  return (
    <div class="patterns">
      {pictures.map((picture, index) => (
        <table key={names[index]}>
          <caption>{names[index]}</caption>
          <thead>
            <tr><th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">weight</th></tr>
          </thead>
          <tbody>
            {strongestOf(picture.series[0].weights).map((position) => {
              const [from, to] = ends(picture, position);
              return (
                <tr key={position}>
                  <th scope="row"><bdi>{from}</bdi></th><th scope="row"><bdi>{to}</bdi></th><td>{formatWeight(picture.series[0].weights[position])}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ))}
    </div>
  );
}
