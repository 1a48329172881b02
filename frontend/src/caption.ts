// What an exported figure shows, in sentences: caption, papers, and the command that makes it again.
import { headColour } from "./colours";
import { type Picture, unitName } from "./compose";
import type { TokenSelection } from "./context";
import type { Caption } from "./figure";
import { labelText } from "./labels";
import { formatPercent } from "./numbers";
import type { Palette } from "./palette";
import type { Payload } from "./payload";
import type { Source } from "./source";
import type { State } from "./state";
import { isolate, shorten } from "./text";
import { filterText, strengthSamples } from "./views/Details";
import { fadedUnits, largestLine, lineStyle } from "./views/lines";

export interface Shown {
  payload: Payload;
  state: State;
  picture: Picture;
  source: Source;
  selection: TokenSelection | null;
}

const QUANTITY_NAMES: { [name: string]: string } = { attention: "Attention", norm: "Norm-weighted attention", gradient: "Attention times its gradient" };

/** The caption as sentences; only what the figure shows. */
export function captionText({ payload, state, picture, source, selection }: Shown): string[] {
  const quantity = source.run.quantities[state.quantity].name;
  const model = source.run.model || source.run.name;
  const ofModel = model && model !== "attention" ? ` of ${model}` : "";
  const subject = `${QUANTITY_NAMES[quantity] ?? quantity}${whichHeads(state, picture, source)}${ofModel}`;
  const text = isolate(shorten(payload.title, 120));
  const first = `${subject} on “${text}”${/[.!?…]\u2069?$/.test(text) ? "" : "."}`;
  if (state.view === "model" || state.view === "difference" || state.view === "neuron") return [first];
  if (selection && state.view === "head") return [first, selectedSentence(picture, selection)];
  const rows = state.part === "all" ? "" : source.run.role === "cross" ? ", from the decoder's text to the encoder's" : `, from sentence ${state.part[0].toUpperCase()} to sentence ${state.part[1].toUpperCase()}`;
  const shown = picture.fraction > 0.9995 ? "" : `: ${formatPercent(picture.fraction)} of the weight of these rows`;
  return [first, `${filterText(state)}${rows}${shown}.`];
}

function whichHeads(state: State, picture: Picture, source: Source): string {
  if (state.view === "model") return " in all layers and heads";
  if (state.view === "difference") return ` in head ${source.nameOf(state.layer, state.heads[0])}`;
  if (picture.series.length !== 1) return ` in heads ${picture.series.map(({ name }) => name).join(", ")}`;
  const [{ name }] = picture.series;
  if (!/^\d+-\d+$/.test(name)) return `, ${name},`;
  const [label] = source.labels(state.layer, state.heads[0]);
  return ` in head ${name}${label ? ` (${labelText(label)})` : ""}`;
}

/** The selected token, its lines and the share of its weight that they hold. */
function selectedSentence(picture: Picture, { side, position }: TokenSelection): string {
  const [rows, columns] = [picture.rows.length, picture.columns.length];
  const token = picture.units[(side === "from" ? picture.rows : picture.columns)[position]];
  const name = `“${isolate(shorten(unitName(token), 40))}” (token ${token.tokens.join(", ")})`;
  let [lines, kept, all] = [0, 0, 0];
  for (const series of picture.series) {
    for (let other = 0; other < (side === "from" ? columns : rows); other++) {
      const at = side === "from" ? position * columns + other : other * columns + position;
      all += Math.abs(series.all[at]);
      if (!(Math.abs(series.weights[at]) > 0)) continue;
      lines++;
      kept += Math.abs(series.weights[at]);
    }
  }
  const share = all > 0 ? formatPercent(kept / all) : "0 %";
  const owner = side === "from" ? `from ${name}` : `to ${name}`;
  return `Lines ${owner}: ${lines}, with ${share} of the weight; the numbers are all weights${picture.series.length > 1 ? ", mean over the heads" : ""}.`;
}

/** The caption below an exported figure, with a legend of colours and of the width of lines. */
export function figureCaption(shown: Shown, palette: Palette): Caption {
  const { state, picture } = shown;
  const isLines = state.view === "head";
  const max = isLines ? largestLine(picture, fadedUnits(picture, state.special)) : 0;
  const colour = picture.signed ? palette.above[3] : headColour(palette, picture.series[0]?.colour ?? 0);
  return {
    lines: captionText(shown),
    colours: isLines && !picture.signed && picture.series.length > 1 ? picture.series.map((series) => ({ name: series.short, colour: headColour(palette, series.colour) })) : [],
    strengths: isLines && max > 0 ? strengthSamples(max).map(([name, strength]) => ({ name, ...lineStyle(strength, colour, palette, 24) })) : [],
    foreground: palette.foreground,
    muted: palette.muted,
  };
}

/** Keys of the papers behind what is shown: the quantity, the combination, and the labels of the heads shown. */
export function citationKeys({ state, source }: Shown): Set<string> {
  const keys = new Set(source.run.quantities[state.quantity].citations);
  if (state.across === "rollout") keys.add("abnar2020");
  if (state.across === "norm" || state.fusion === "norm") keys.add("kobayashi2020");
  const heads = state.view === "model" ? source.run.labels : state.across === "one" ? state.heads.flatMap((head) => source.labels(state.layer, head)) : [];
  for (const { citations } of heads) for (const key of citations) keys.add(key);
  return keys;
}

/** Their entries for a bibliography. */
export function bibtexOf(shown: Shown): string {
  const keys = citationKeys(shown);
  return shown.payload.citations.filter(({ key }) => keys.has(key)).map(({ bibtex }) => bibtex).join("\n\n");
}

/** The command that makes a page which opens on this figure; empty if there is none. */
export function commandOf(payload: Payload, hash: string): string {
  if (!payload.command) return "";
  return hash ? `${payload.command} --state '${hash.replaceAll("'", "%27")}'` : payload.command;
}
