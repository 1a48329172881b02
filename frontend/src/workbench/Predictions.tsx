// What the model predicts: before and after the changes, with a random control; of B; and read at every layer.
import { useState } from "preact/hooks";
import type { InterveneAnswer, JobRequest, LiveAnswer, Predictions as Predicted } from "../api";
import { formatPercent } from "../numbers";
import { type Bench, textOf } from "./address";
import { numbered, post } from "./client";
import type { Report } from "./use";

const SHOWN = 5;

interface Column {
  name: string;
  predictions: Predicted;
}

interface Group {
  title: string;
  isPredicted: boolean[]; // by each column: a model without the task head does not
  rows: { text: string; values: (number | null)[] }[];
}

interface Props {
  bench: Bench;
  taskHeads: string[]; // of the model
  answers: LiveAnswer[];
  change: InterveneAnswer | null;
  startJob: (request: JobRequest) => void;
  report: Report;
}

export function Predictions({ bench, taskHeads, answers, change, startJob, report }: Props) {
  const [first, second] = answers;
  const columns: Column[] = change
    ? [{ name: "before", predictions: change.before }, { name: "after", predictions: change.after }, ...(change.control ? [{ name: "control", predictions: change.control }] : [])]
    : [...(first?.predictions ? [{ name: second ? "A" : "", predictions: first.predictions }] : []), ...(second?.predictions ? [{ name: "B", predictions: second.predictions }] : [])];
  const groups = columns.length ? groupsOf(columns, first) : [];
  const columnOfB = second?.predictions ? [{ name: "B", predictions: second.predictions }] : [];
  const groupsOfB = columnOfB.length ? groupsOf(columnOfB, second).filter(({ title }) => change !== null || !groups.some((group) => group.title === title)) : [];
  return (
    <section class="predictions" aria-label="Predictions">
      <div class="spread"><h2>{change ? "Predictions, before → after" : second ? "Predictions of A and B" : "Predictions"}</h2></div>
      {change?.control_intervention && <p class="note">Control: {describe(change.control_intervention)}, chosen at random.</p>}
      {change?.notes.map((note) => <p class="note" key={note}>{note}</p>)}
      {groups.map((group) => <GroupTable key={group.title} group={group} columns={columns} isChanged={change !== null} />)}
      {groupsOfB.map((group) => <GroupTable key={`B ${group.title}`} group={{ ...group, title: `B: ${group.title}` }} columns={columnOfB} isChanged={false} />)}
      {first?.predictions && !groups.length && <p class="note">{taskHeads.length ? "Mask a token to see what the model expects there." : `${first.model} has no task head, so that it predicts nothing. Switching a head off shows in the attention of the layers above it.`}</p>}
      {first && (
        <p class="note">
          One text.
          {change?.corpus_job && <> <button type="button" class="link" data-do="ask-corpus" onClick={() => startJob(change.corpus_job!)}>Ask the corpus</button> whether the change is more than chance.</>}
          {change && !change.corpus_job && " Over the corpus one kind of change can be measured at a time, of heads."}
        </p>
      )}
      {first?.predictions && groups.length > 0 && <LayerReadings bench={bench} report={report} />}
    </section>
  );
}

/** The candidates of one position or task head; the bar is the first column, the mark in it the second after a change. */
function GroupTable({ group, columns: all, isChanged }: { group: Group; columns: Column[]; isChanged: boolean }) {
  const columns = all.filter((_, index) => group.isPredicted[index]);
  return (
    <table>
      <caption>{group.title}</caption>
      {columns.length > 1 && <thead><tr><th scope="col"><span class="spoken">prediction</span></th><td />{columns.map(({ name }) => <th scope="col" key={name}>{name}</th>)}</tr></thead>}
      <tbody>
        {group.rows.map(({ text, values }) => (
          <tr key={text}>
            <th scope="row"><bdi>{text}</bdi></th>
            <td class="bar" aria-hidden="true"><i style={{ width: `${100 * (values[0] ?? 0)}%` }} />{isChanged && <u style={{ left: `${100 * (values[1] ?? 0)}%` }} />}</td>
            {values.filter((_, index) => group.isPredicted[index]).map((value, index) => <td key={index} title={value === null ? "not among its ten best" : String(value)}>{value === null ? "–" : formatProbability(value)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function formatProbability(value: number): string {
  return value >= 0.9995 ? "1.0" : value < 0.0001 ? "< .0001" : value.toPrecision(2).replace(/^0/, "");
}

function describe({ off, uniform, mean, keep, layers_off }: Exclude<InterveneAnswer["control_intervention"], null>): string {
  return [
    off?.length && `${off.join(", ")} off`, uniform?.length && `${uniform.join(", ")} uniform`, mean?.length && `${mean.join(", ")} mean`,
    keep?.length && `only ${keep.join(", ")} kept`, layers_off?.length && `layer ${layers_off.join(", ")} off`,
  ].filter(Boolean).join("; ");
}

function groupsOf(columns: Column[], answer: LiveAnswer | undefined): Group[] {
  const [first] = columns;
  type Candidates = { text: string; probability: number }[];
  const group = (title: string, of: (predictions: Predicted) => Candidates | undefined): Group => {
    const shown = (of(first.predictions) ?? []).slice(0, SHOWN);
    return { title, isPredicted: columns.map(({ predictions }) => (of(predictions) ?? []).length > 0), rows: shown.map(({ text }) => ({ text, values: columns.map(({ predictions }) => of(predictions)?.find((each) => each.text === text)?.probability ?? null) })) };
  };
  const tokens = answer?.run.tokens ?? [];
  const { masked_tokens, next_token, classes, tags, answers } = first.predictions;
  return [
    ...masked_tokens.map(({ position }) => group(masked_tokens.length > 1 ? `Masked token ${position}, after “${tokens[position - 1]?.text ?? ""}”` : "Masked token", (each) => each.masked_tokens.find((token) => token.position === position)?.candidates)),
    ...(next_token.length ? [group("Next token", (each) => each.next_token)] : []),
    ...classes.filter(({ score }) => score === null).map(({ task_head }) => group(task_head === "nsp" ? "Second text (nsp)" : task_head === "label" ? "Class" : `Class (${task_head})`, (each) => each.classes.find((other) => other.task_head === task_head)?.candidates)),
    ...(answers.length ? [group("Answer", (each) => each.answers)] : []),
    ...tags.map(({ position, token }) => group(`Tag of “${token}”`, (each) => each.tags.find((tag) => tag.position === position)?.candidates)).map((each) => ({ ...each, rows: each.rows.slice(0, 1) })),
  ].filter(({ title, rows }) => rows.length && (title !== "Second text (nsp)" || answer?.run.is_pair));
}

interface Reading {
  layer: number;
  text: string;
  probability: number;
}

/** The first prediction, read at every layer. */
function LayerReadings({ bench, report }: { bench: Bench; report: Report }) {
  const [shown, setShown] = useState<{ key: string; readings: Reading[]; notes: string[] } | null>(null);
  const request = { ...textOf(bench), intervention: { off: bench.off, uniform: bench.uniform, mean: bench.mean, keep: bench.keep, layers_off: bench.layersOff } };
  const key = JSON.stringify(request);
  const ask = () => {
    post("live", { ...request, layers: [], measures: false, layer_predictions: true, ...numbered("layers") }).then((answer) => {
      const readings = answer.layer_predictions.flatMap(({ layer, predictions }) => {
        const best = predictions.masked_tokens[0]?.candidates[0] ?? predictions.next_token[0] ?? predictions.classes[0]?.candidates[0];
        return best ? [{ layer, ...best }] : [];
      });
      setShown({ key, readings, notes: answer.notes });
    }, report);
  };
  if (shown?.key !== key) return <p class="note"><button type="button" class="link" data-do="layers" onClick={ask}>Read the first prediction at every layer</button></p>;
  return (
    <div class="readings">
      <table>
        <caption>Read at every layer</caption>
        <tbody>{shown.readings.map(({ layer, text, probability }) => <tr key={layer}><th scope="row">{layer === 0 ? "embeddings" : `layer ${layer}`}</th><td class="word"><bdi>{text}</bdi></td><td>{formatPercent(probability)}</td></tr>)}</tbody>
      </table>
      {shown.notes.map((note) => <p class="note" key={note}>{note}</p>)}
    </div>
  );
}
