// The numbers of two runs: what moved most, or what is strongest in each where they cannot be compared.
import type { Picture } from "../compose";
import { weight } from "../numbers";
import { both, subtracted } from "./panels";

const MOST = 12;

function strongestOf(weights: Float32Array): number[] {
  return Array.from(weights.keys()).sort((x, y) => (Math.abs(weights[y]) || 0) - (Math.abs(weights[x]) || 0)).slice(0, MOST);
}

function ends(map: Picture, place: number): [string, string] {
  const width = map.columns.length;
  return [map.units[map.rows[Math.trunc(place / width)]].text, map.units[map.columns[place % width]].text];
}

/** The largest differences, with the tokens of both inputs where these differ. */
export function Moved({ maps, names }: { maps: Picture[]; names: string[] }) {
  const difference = subtracted(maps);
  const [a, b] = maps;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th><th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          {strongestOf(difference).map((place) => {
            const [[from, to], [otherFrom, otherTo]] = [ends(a, place), ends(b, place)];
            return (
              <tr key={place}>
                <th scope="row"><bdi>{both(from, otherFrom)}</bdi></th>
                <th scope="row"><bdi>{both(to, otherTo)}</bdi></th>
                <td>{weight(a.series[0].weights[place])}</td>
                <td>{weight(b.series[0].weights[place])}</td>
                <td>{difference[place] > 0 ? "+" : ""}{weight(difference[place])}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The strongest weights of each run, with its own tokens. */
export function Strongest({ maps, names }: { maps: Picture[]; names: string[] }) {
  return (
    <div class="maps">
      {maps.map((map, index) => (
        <table key={names[index]}>
          <caption>{names[index]}</caption>
          <thead>
            <tr><th scope="col">from</th><th scope="col" class="word">to</th><th scope="col">weight</th></tr>
          </thead>
          <tbody>
            {strongestOf(map.series[0].weights).map((place) => {
              const [from, to] = ends(map, place);
              return (
                <tr key={place}>
                  <th scope="row"><bdi>{from}</bdi></th><th scope="row"><bdi>{to}</bdi></th><td>{weight(map.series[0].weights[place])}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ))}
    </div>
  );
}
