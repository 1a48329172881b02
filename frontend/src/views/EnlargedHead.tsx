// The chosen head of the model view: its map with tokens and numbers, and all its measures with rank and baseline.
import { useMemo, useState } from "preact/hooks";
import { compose } from "../compose";
import type { ViewProps } from "../context";
import { FADED_NOTE, weightScale } from "../fade";
import { poolingNote } from "../heatmap";
import { labelText } from "../labels";
import { formatWeight } from "../numbers";
import { ColourBar } from "./ColourBar";
import { Labels } from "./Details";
import { MapCanvas } from "./MapCanvas";
import { type Cell, sizeOf, type WeightMap } from "./maps";
import { formatMeasure, type Measure, ranking } from "./measures";

const CARD = 250; // width of the table beside the map
const MIN_MAP = 330;
const MAX_CORPUS_ROWS = 8;

interface Props extends ViewProps {
  measures: Measure[];
  shownMeasure: Measure | null;
  space: number;
  height: number;
}

export function EnlargedHead({ source, state, update, palette, picture, measures, shownMeasure, space, height }: Props) {
  const head = state.heads[0];
  const [cell, setCell] = useState<Cell | null>(null);
  const single = useMemo(() => (state.heads.length === 1 && state.across === "one" && state.fusion === "each" ? picture : compose({ ...state, heads: [head], across: "one", fusion: "each" }, source)), [picture]);
  const { weights } = single.series[0];
  const map = useMemo<WeightMap>(() => {
    const texts = (units: number[]) => units.map((unit) => single.units[unit].text);
    return { title: "", rows: texts(single.rows), columns: texts(single.columns), weights };
  }, [single]);
  const beside = space >= MIN_MAP + CARD + 16;
  const size = useMemo(() => sizeOf([map], Math.min(720, beside ? space - CARD - 16 : space), Math.max(300, height - (beside ? 84 : 120))), [map, space, height, beside]);
  const colours = useMemo(() => weightScale(palette, [weights], single, state.special), [palette, single, state.special]);
  const { scale } = colours;
  const labels = source.labels(state.layer, head);
  const signed = single.signed;
  const describe = ({ row, column }: Cell) => {
    if (column < 0) return [`from ${map.rows[row]}`, "row of this token"];
    if (row < 0) return [`to ${map.columns[column]}`, "column of this token"];
    const value = weights[row * map.columns.length + column];
    return [`${map.rows[row]} → ${map.columns[column]}`, value === value ? formatWeight(value, single.step) : "filtered out", `token ${single.rows[row] + 1} to token ${single.columns[column] + 1}`];
  };
  const name = source.nameOf(state.layer, head);
  return (
    <div class="enlarged" style={{ width: `${space}px` }}>
      <div class="row">
        <h2>Head {name}{labels.length > 0 && <span class="labelled"> {labelText(labels[0])}</span>}</h2>
        <span class="buttons">
          <button type="button" onClick={() => update({ view: "head", heads: [head] })}>Lines</button>
          <button type="button" onClick={() => update({ view: "matrix", heads: [head] })}>Numbers</button>
          {source.query && <button type="button" onClick={() => update({ view: "neuron", heads: [head] })}>Neurons</button>}
        </span>
      </div>
      <div class={beside ? "side-by-side" : ""}>
        <div>
          <MapCanvas map={map} size={size} colours={colours} palette={palette} label={`Attention of head ${name}`} cell={cell} point={setCell} describe={describe} />
          <div class="map-bar" style={{ marginLeft: `${size.left}px`, width: `${Math.min(size.side, 260)}px` }}>
            <ColourBar bar={{ scale, low: signed ? -scale.max : 0, high: scale.max || 1, texts: signed ? [formatWeight(-scale.max), "0", formatWeight(scale.max)] : ["0", "", `${formatWeight(scale.max)} weight`] }} name="Weights" />
          </div>
          <p class="note">{[colours.fades ? FADED_NOTE : "", poolingNote(map.rows.length, map.columns.length, Math.floor(size.side))].filter(Boolean).join(" ")}</p>
        </div>
        <div class="card" style={beside ? { maxHeight: `${size.height}px` } : {}} tabIndex={0} role="region" aria-label={`Measures of head ${name}`}>
          <MeasureTable measures={measures} shown={shownMeasure} index={state.layer * source.heads + head} />
          <Labels labels={labels} />
        </div>
      </div>
    </div>
  );
}

/** All measures of this text, and those of results; the value, the first baseline and the rank. */
function MeasureTable({ measures, shown, index }: { measures: Measure[]; shown: Measure | null; index: number }) {
  const sources = [...new Set(measures.map(({ source }) => source))];
  return (
    <>
      {sources.map((source) => {
        const own = measures.filter((measure) => measure.source === source);
        const listed = own.filter((measure, position) => position < MAX_CORPUS_ROWS || measure === shown);
        return (
          <table key={source}>
            <caption>{source}</caption>
            <thead>
              <tr><th scope="col">measure</th><th scope="col">value</th><th scope="col" title={own[0].baselines[0]?.name}>{own[0].baselines[0]?.name === "uniform attention" ? "uniform" : "baseline"}</th><th scope="col">rank</th></tr>
            </thead>
            <tbody>
              {listed.map((measure) => {
                const value = measure.values[index];
                return (
                  <tr key={measure.name} class={measure === shown ? "shown-measure" : undefined} title={[measure.name, measure.unit, ...measure.baselines.map(({ name, values }) => `${name} ${formatMeasure(values[index])}`)].join("\n")}>
                    <th scope="row">{measure.name}</th>
                    <td>{value === value ? formatMeasure(value, measure.step) : "–"}</td>
                    <td>{measure.baselines.length ? formatMeasure(measure.baselines[0].values[index]).replace("not measured", "–") : "–"}</td>
                    <td>{value === value ? ranking(measure).indexOf(index) + 1 : "–"}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        );
      })}
    </>
  );
}
