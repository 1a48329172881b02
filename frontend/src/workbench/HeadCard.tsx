// All that is known of the chosen head over the corpus; what is missing is a button that starts its job.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { HeadCard as Card, HeadNumber, JobAnswer, JobRequest, LinkHistogram, MissingPart } from "../api";
import { labelText } from "../labels";
import { formatPercent } from "../numbers";
import { formatMeasure } from "../views/measures";
import type { Bench } from "./address";
import { get, RequestError } from "./client";
import { doneJobs, type Report, type UpdateBench } from "./use";
import { LinkLines } from "./words";

interface Props {
  bench: Bench; // with the names of the model and the corpus
  update: UpdateBench;
  isReady: boolean;
  jobs: JobAnswer[];
  startJob: (request: JobRequest) => void;
  report: Report;
}

export function HeadCard({ bench, update, isReady, jobs, startJob, report }: Props) {
  const [answer, setCard] = useState<Card | null>(null);
  const [examples, setExamples] = useState<Examples>("strongest");
  const card = answer?.model === bench.model && answer.corpus === bench.corpus ? answer : null;
  const done = doneJobs(jobs);
  useEffect(() => {
    if (!isReady || !bench.head) return undefined;
    let isOutdated = false;
    get("heads/{head}", { head: bench.head, model: bench.model, corpus: bench.corpus }).then(
      (answer) => isOutdated || setCard(answer),
      (error: unknown) => isOutdated || (error instanceof RequestError && error.status === 503) || report(error),
    );
    return () => {
      isOutdated = true;
    };
  }, [bench.head, bench.model, bench.corpus, isReady, done]);
  // Typing changes nothing on the card, which is long: it is made again only when it has changed.
  return useMemo(
    () => card ? <Body card={card} bench={bench} {...{ examples, setExamples, update, jobs, startJob }} /> : <section class="head-card" aria-label="Head card"><h2 class="title">Head {bench.head}</h2><p class="note">Waiting for the model and the corpus.</p></section>,
    [card, bench.head, bench.query, examples, jobs],
  );
}

type Examples = "strongest" | "random" | "missed";

interface BodyProps extends Pick<Props, "bench" | "update" | "jobs" | "startJob"> {
  card: Card;
  examples: Examples;
  setExamples: (examples: Examples) => void;
}

function Body({ card, bench, examples, setExamples, update, jobs, startJob }: BodyProps) {
  const [label, ...further] = card.labels;
  const tabs: [Examples, string][] = [["strongest", "Where it attends most"], ["random", "at random"], ["missed", "where it should and does not"]];
  return (
    <section class="head-card" aria-label="Head card" data-head={card.head}>
      <h2 class="title">Head {card.head} {label && <small>{labelText(label)}</small>}</h2>
      {label && <p class="note">{label.evidence}</p>}
      {further.map((each) => <p class="note" key={each.label}><b>{labelText(each)}</b> {each.evidence}</p>)}
      <p class="note">Over {card.corpus}, {card.model}. Intervals and n are of the corpus; ranks are among all heads, SD is the distance from their mean in standard deviations.</p>
      <Numbers title="Numbers" numbers={card.numbers} />
      <Numbers title="Cost of removal" numbers={card.cost_of_removal} />
      {card.similar.length > 0 && (
        <dl class="facts">
          <dt>most alike</dt>
          <dd>{card.similar.map(({ head, agreement }, index) => <span key={head}>{index > 0 && ", "}<button type="button" class="link" onClick={() => update({ head })}>{head}</button> {formatPercent(agreement)}</span>)} <span class="note">same strongest word, n = {card.similar[0].n.toLocaleString("en")}; all heads {formatPercent(card.similar[0].mean)}</span></dd>
        </dl>
      )}
      {card.claims.length > 0 && (
        <>
          <h3>Claims</h3>
          <ul class="claims">{card.claims.map((claim) => <li key={claim.id}><b class={`verdict ${claim.verdict}`}>{claim.verdict}</b> {claim.claim} <span class="note">{claim.paper}. {claim.answer}{claim.settings && ` (${claim.settings})`}</span></li>)}</ul>
        </>
      )}
      <Missing parts={card.missing} jobs={jobs} bench={bench} startJob={startJob} />
      {card.histograms.slice(0, 1).map((histogram) => <Histogram key={histogram.name} histogram={histogram} />)}
      {card.strongest.length > 0 && (
        <>
          <div class="words examples" role="group" aria-label="Texts">
            {tabs.map(([name, text]) => <button type="button" key={name} data-examples={name} aria-pressed={examples === name} onClick={() => setExamples(name)}>{text}</button>)}
          </div>
          {examples === "missed" && <p class="note">{card.missed_note}</p>}
          <LinkLines links={card[examples]} open={update} />
          <p class="note"><b>Bold</b> attends to <u>underlined</u>. <button type="button" class="link" onClick={() => update({ panel: "search", query: bench.query || `${card.head} NOUN -> VERB > 0.5` })}>Search its links</button></p>
        </>
      )}
      {card.histograms.slice(1).map((histogram) => <Histogram key={histogram.name} histogram={histogram} />)}
    </section>
  );
}

const SHOWN_NUMBERS = 4; // the others are folded

function Numbers({ title, numbers }: { title: string; numbers: HeadNumber[] }) {
  if (!numbers.length) return null;
  const [first, others] = numbers.length > SHOWN_NUMBERS + 1 ? [numbers.slice(0, SHOWN_NUMBERS), numbers.slice(SHOWN_NUMBERS)] : [numbers, []];
  return (
    <>
      <h3>{title}</h3>
      <Facts numbers={first} />
      {others.length > 0 && <details><summary>{others.length} more</summary><Facts numbers={others} /></details>}
    </>
  );
}

function Facts({ numbers }: { numbers: HeadNumber[] }) {
  return (
    <dl class="facts">
      {numbers.map((number) => {
        if (number.is_p_value) return <PValue key={`${number.analysis} ${number.measure}`} number={number} />;
        const interval = number.low !== null && number.high !== null && number.low !== number.high ? ` [${formatMeasure(number.low)}, ${formatMeasure(number.high)}]` : "";
        const baselines = Object.entries(number.baselines).filter(([, value]) => value !== null);
        return [
          <dt key={`${number.analysis} ${number.measure}`} title={`${number.analysis}${number.unit ? `, ${number.unit}` : ""}`}>{number.measure}</dt>,
          <dd key={`value ${number.analysis} ${number.measure}`} title={[`${number.interval} interval`, number.settings].filter(Boolean).join("; ")}>
            <b>{number.value === null ? "not measured" : formatMeasure(number.value)}</b>{interval}
            <span class="note"> n = {number.n.toLocaleString("en")}{number.rank !== null && ` · ${number.rank} of ${number.n_heads}`}{number.effect_size !== null && ` · ${signed(number.effect_size)} SD`}{number.settings && ` · ${number.settings}`}{baselines.map(([name, value]) => ` · ${name} ${formatMeasure(value!)}`).join("")}</span>
          </dd>,
        ];
      })}
    </dl>
  );
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
}

/** A p value says whether the head stands out; it has no rank, and its size is no effect. */
function PValue({ number: { analysis, measure, unit, value, n, n_heads, baselines, settings } }: { number: HeadNumber }) {
  const [level] = Object.entries(baselines).filter(([, each]) => each !== null);
  const shown = value === null ? "not tested" : value < 0.001 ? "p < 0.001" : `p = ${value.toPrecision(2)}`;
  return (
    <>
      <dt title={`${analysis}${unit ? `, ${unit}` : ""}`}>{measure}</dt>
      <dd data-p={value ?? ""}>
        <b>{shown}</b>
        <span class="note"> n = {n.toLocaleString("en")} · one of {n_heads} tests{settings && ` · ${settings}`}{value !== null && level && ` · ${value < level[1]! ? "below" : "not below"} the ${level[0]}, ${level[1]}`}</span>
      </dd>
    </>
  );
}

const MAX_BARS = 12;

function Histogram({ histogram }: { histogram: LinkHistogram }) {
  const bars = histogram.bars.slice(0, MAX_BARS);
  const top = Math.max(...bars.flatMap(({ proportion, base_rate }) => [proportion, base_rate]), 0.01);
  return (
    <figure class="histogram">
      <figcaption>Links by {histogram.name}, beside chance <span class="note">n = {histogram.n.toLocaleString("en")}</span></figcaption>
      <div class="bars" role="img" aria-label={bars.map(({ category, proportion, base_rate }) => `${category} ${formatPercent(proportion)}, chance ${formatPercent(base_rate)}`).join("; ")}>
        {bars.map(({ category, count, proportion, base_rate }) => (
          <span key={category} title={`${category}: ${count.toLocaleString("en")} links, ${formatPercent(proportion)}; chance ${formatPercent(base_rate)}`}>
            <i style={{ height: `${(44 * proportion) / top}px` }} /><u style={{ height: `${(44 * base_rate) / top}px` }} /><small>{category}</small>
          </span>
        ))}
      </div>
      <p class="note">Grey: {histogram.base}</p>
    </figure>
  );
}

const PART_NAMES: Record<string, string> = { links: "its links: texts, histograms, nearest heads", claims: "published claims" };

function Missing({ parts, jobs, bench, startJob }: { parts: MissingPart[]; jobs: JobAnswer[]; bench: Bench; startJob: Props["startJob"] }) {
  if (!parts.length) return null;
  const running = (part: MissingPart) => jobs.find(({ request, state }) => request.kind === part.kind && (request.analysis ?? "") === part.analysis && request.model === bench.model && request.corpus === bench.corpus && !request.limit && (state === "queued" || state === "running"));
  return (
    <>
      <h3>Not computed yet</h3>
      <ul class="missing">
        {parts.map((part) => {
          const job = running(part);
          return (
            <li key={part.part}>
              <span>{PART_NAMES[part.part] ?? part.part}</span>
              {part.reason ? <span class="note">{part.reason}</span> : job ? <span class="note">{job.state}{job.fraction !== null && ` ${formatPercent(job.fraction)}`}</span> : <button type="button" data-missing={part.part} onClick={() => startJob({ kind: part.kind as JobRequest["kind"], analysis: part.analysis, model: bench.model, corpus: bench.corpus })}>compute</button>}
            </li>
          );
        })}
      </ul>
    </>
  );
}
