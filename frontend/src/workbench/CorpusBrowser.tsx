// The corpus by pages, searched by word, tag, relation and label; a text opens in the workbench.
import { useEffect, useState } from "preact/hooks";
import type { CorpusPage, CorpusRequest, CorpusState } from "../api";
import { get, RequestError } from "./client";
import type { Report, UpdateBench } from "./use";

const PAGE = 20;

interface Props {
  corpus: CorpusState | undefined;
  update: UpdateBench;
  report: Report;
}

export function CorpusBrowser({ corpus, update, report }: Props) {
  const [fields, setFields] = useState<CorpusRequest>({ word: "", pos: "", relation: "", label: "" });
  const [asked, setAsked] = useState<CorpusRequest>({ start: 0, count: PAGE });
  const [page, setPage] = useState<CorpusPage | null>(null);
  const isReady = corpus?.status === "ready";
  useEffect(() => {
    if (isReady) get("corpus", { ...asked, corpus: corpus.name }).then(setPage, (error: unknown) => (error instanceof RequestError && error.status === 503) || report(error));
  }, [asked, isReady]);
  const field = (name: "word" | "pos" | "relation" | "label", title: string, hint: string) => (
    <label><span>{title}</span><input type="text" data-choice={title} size={8} placeholder={hint} value={fields[name]} onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })} /></label>
  );
  const turn = (start: number) => setAsked({ ...asked, start });
  const start = page?.start ?? 0;
  const isFiltered = Boolean(asked.word || asked.pos || asked.relation);
  return (
    <section class="corpus" aria-label="Corpus">
      <h2 class="title">Corpus <small>{corpus?.name}</small></h2>
      <form role="search" onSubmit={(event) => { event.preventDefault(); setAsked({ ...fields, start: 0, count: PAGE }); }}>
        {field("word", "Word", "the")}
        {corpus && corpus.annotations.pos > 0 && field("pos", "Tag", "NOUN")}
        {corpus && corpus.annotations.relations > 0 && field("relation", "Relation", "obj")}
        {corpus && corpus.labels.length > 0 && field("label", "Label", corpus.labels[0])}
        <button type="submit">Search</button>
      </form>
      {!page && <p class="note">The corpus is being read.</p>}
      {page && (
        <>
          <p class="counts" role="status">{page.n_examples.toLocaleString("en")} of {page.total.toLocaleString("en")} texts{isFiltered && <>; {page.n_words.toLocaleString("en")} of {page.total_words.toLocaleString("en")} words fit</>}.</p>
          <ul class="corpus-lines">
            {page.examples.map((example) => (
              <li key={example.index}>
                <button type="button" class="corpus-line" data-example={example.index} onClick={() => update({ example: example.index, edits: [], token: -1 })}>
                  <span class="index">{example.index + 1}</span> {example.segments.map((segment, index) => <span key={index}>{index > 0 && " | "}{segment.words.map((word, at) => (segment.matches.includes(at) ? <b key={at}>{word} </b> : `${word} `))}</span>)}
                </button>
                {example.label !== null && <span class="value">{example.label}</span>}
              </li>
            ))}
          </ul>
          <div class="spread">
            <button type="button" disabled={start === 0} onClick={() => turn(Math.max(0, start - PAGE))}>Previous</button>
            <span class="note">{page.n_examples === 0 ? "none" : `${start + 1} to ${Math.min(page.n_examples, start + page.examples.length)}`}</span>
            <button type="button" data-do="next-page" disabled={start + page.examples.length >= page.n_examples} onClick={() => turn(start + PAGE)}>Next</button>
          </div>
        </>
      )}
    </section>
  );
}
