// Search over the corpus: links of a head, and words in a state similar to that of the selected token.
import { useEffect, useState } from "preact/hooks";
import type { JobAnswer, JobRequest, LinkAnswer, NeighbourAnswer, WorkbenchState } from "../api";
import { formatPercent } from "../numbers";
import { type Bench, layerOf, textOf } from "./address";
import { post, RequestError } from "./client";
import { JobLine } from "./Jobs";
import { doneJobs, type Report, type UpdateBench } from "./use";
import { CorpusLine, LinkLines } from "./words";

interface Props {
  bench: Bench; // with the names of the model and the corpus
  update: UpdateBench;
  server: WorkbenchState | null;
  jobs: JobAnswer[];
  tokens: { text: string; special: boolean }[];
  startJob: (request: JobRequest) => void;
  refresh: () => void;
  report: Report;
}

export function Search(props: Props) {
  return (
    <section class="search" aria-label="Search">
      <h2 class="title">Search</h2>
      <Links {...props} />
      <Neighbours {...props} />
    </section>
  );
}

function Links({ bench, update, jobs, startJob, refresh, report }: Props) {
  const [query, setQuery] = useState(bench.query || `${bench.head} NOUN -> VERB > 0.5`);
  const [answer, setAnswer] = useState<LinkAnswer | null>(null);
  const [needsIndex, setNeedsIndex] = useState(false);
  const done = doneJobs(jobs);
  const ask = (start = 0) => {
    post("links", { query: bench.query, model: bench.model, corpus: bench.corpus, start }).then((next) => {
      setAnswer((old) => (start && old ? { ...next, links: [...old.links, ...next.links] } : next));
      setNeedsIndex(false);
    }, (error: unknown) => {
      if (error instanceof RequestError && error.status === 409) return setNeedsIndex(true);
      setAnswer(null); // that of another search would stand below this one
      report(error);
    });
  };
  useEffect(() => {
    if (bench.query && bench.model && bench.corpus) {
      setQuery(bench.query);
      ask();
    }
  }, [bench.query, bench.model, bench.corpus, done]);
  return (
    <>
      <form role="search" onSubmit={(event) => { event.preventDefault(); if (query.trim() === bench.query) ask(); else update({ query: query.trim() }); }}>
        <label><span>Links of a head</span><input type="search" data-choice="Query" value={query} spellcheck={false} maxLength={300} onInput={(event) => setQuery(event.currentTarget.value)} /></label>
        <button type="submit">Search</button>
      </form>
      <p class="note">A side is a tag (NOUN), a word ("the"), a relation (@nsubj) or *. Then, in any order: “&gt; 0.3” the least weight, “by obj” from a word to its governor, “by &lt;obj” to its dependent, “at -1” to the word before.</p>
      {needsIndex && <Index kind="links" text="The search needs an index of the strongest links of every head." {...{ jobs, bench, startJob, refresh, report }} />}
      {answer && !needsIndex && (
        <>
          <p class="counts" role="status">
            {answer.n_pairs === 0 ? <>No two words of the corpus fit this search, linked or not.</> : answer.n_source_links > 0 && answer.proportion !== null
              ? <><b>{answer.n_links.toLocaleString("en")}</b> of {answer.n_source_links.toLocaleString("en")} links of {answer.head} from such words: <b>{formatPercent(answer.proportion)}</b> [{formatPercent(answer.low ?? 0)}, {formatPercent(answer.high ?? 0)}]; chance {formatPercent(answer.chance ?? 0)} ({Math.round(answer.expected).toLocaleString("en")} links).</>
              : <>Head {answer.head} has no such link.</>}
          </p>
          <p class="note" hidden={answer.n_pairs === 0}>{answer.n_links.toLocaleString("en")} of {answer.n_pairs.toLocaleString("en")} pairs that fit are linked.{!answer.complete && " Below a weight of 1/4 some links are missing from the counts."}</p>
          <LinkLines links={answer.links} open={update} />
          {answer.links.length < answer.n_links && <button type="button" onClick={() => ask(answer.links.length)}>More</button>}
        </>
      )}
    </>
  );
}

function Neighbours({ bench, update, server, jobs, tokens, startJob, refresh, report }: Props) {
  const layers = server?.models.find(({ name }) => name === bench.model)?.layers ?? 0;
  const ordinary = tokens.map((token, position) => ({ ...token, position })).filter(({ special, text }) => !special || text === "[MASK]");
  const [position, setPosition] = useState(bench.token);
  const [layer, setLayer] = useState(layerOf(bench.head) || 1);
  const [answer, setAnswer] = useState<NeighbourAnswer | null>(null);
  const [needsIndex, setNeedsIndex] = useState(false);
  const chosen = ordinary.some((token) => token.position === position) ? position : ordinary[0]?.position ?? -1;
  const ask = () => {
    post("neighbours", { ...textOf(bench), position: chosen, layer, count: 12 }).then((next) => {
      setAnswer(next);
      setNeedsIndex(false);
    }, (error: unknown) => (error instanceof RequestError && error.status === 409 ? setNeedsIndex(true) : report(error)));
  };
  const done = doneJobs(jobs);
  useEffect(() => {
    if (needsIndex) ask();
  }, [done]);
  return (
    <>
      <h3>Words in a similar state</h3>
      <form onSubmit={(event) => { event.preventDefault(); ask(); }}>
        <label><span>Token</span><select value={chosen} data-choice="Token" onChange={(event) => setPosition(Number(event.currentTarget.value))}>{ordinary.map((token) => <option key={token.position} value={token.position}>{token.text}</option>)}</select></label>
        <label><span>Layer</span><select value={layer} data-choice="State layer" onChange={(event) => setLayer(Number(event.currentTarget.value))}>{Array.from({ length: layers + 1 }, (_, each) => <option key={each} value={each}>{each === 0 ? "embeddings" : each}</option>)}</select></label>
        <button type="submit" data-do="neighbours" disabled={chosen < 0}>Find</button>
      </form>
      {needsIndex && <Index kind="states" text="This needs an index of the states of all words." {...{ jobs, bench, startJob, refresh, report }} />}
      {answer && !needsIndex && (
        <>
          <p class="counts" role="status">Nearest to “{answer.word}” at layer {answer.layer}, of {answer.n.toLocaleString("en")} words{answer.chance !== null && <>; random words have a cosine of {answer.chance.toFixed(2)}</>}.</p>
          <ul class="corpus-lines">{answer.neighbours.map((each, index) => <CorpusLine key={index} example={each.example} words={each.words} strong={each.word} value={each.cosine.toFixed(2)} open={update} />)}</ul>
        </>
      )}
    </>
  );
}

interface IndexProps {
  kind: "links" | "states";
  text: string;
  jobs: JobAnswer[];
  bench: Bench;
  startJob: (request: JobRequest) => void;
  refresh: () => void;
  report: Report;
}

/** The button that builds an index, or how far it is. */
function Index({ kind, text, jobs, bench, startJob, refresh, report }: IndexProps) {
  const job = jobs.find(({ request, state }) => request.kind === kind && request.model === bench.model && request.corpus === bench.corpus && (state === "queued" || state === "running"));
  return (
    <div class="index-offer">
      <p class="note">{text}</p>
      {job ? <ul class="jobs-list"><JobLine job={job} refresh={refresh} report={report} /></ul> : <button type="button" data-do={`index-${kind}`} onClick={() => startJob({ kind, model: bench.model, corpus: bench.corpus })}>Build the index of {kind}</button>}
    </div>
  );
}
