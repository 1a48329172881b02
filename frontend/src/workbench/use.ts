// The state of the page and what follows from it: the address, what the server has loaded, answers to requests.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { InterveneAnswer, JobAnswer, LiveAnswer, LiveRequest, MeasureList, Problem, WorkbenchState } from "../api";
import { type Bench, fromAddress, hasText, interventionOf, isChanged, liveRequest, textOf, toAddress } from "./address";
import { get, numbered, post, RequestError } from "./client";

export type UpdateBench = (patch: Partial<Bench>, how?: "push" | "replace") => void;
export type Report = (error: unknown) => void;

/** Refused requests, which stay until they are dismissed. */
export function useProblems(): { problems: Problem[]; report: Report; dismiss: (problem: Problem) => void } {
  const [problems, setProblems] = useState<Problem[]>([]);
  const report = useCallback((error: unknown) => {
    if (!(error instanceof RequestError)) {
      if ((error as Error).name !== "AbortError") throw error;
      return;
    }
    const { problem } = error;
    setProblems((old) => (old.some(({ paragraph }) => paragraph === problem.paragraph) ? old : [...old.slice(-3), problem]));
  }, []);
  const dismiss = useCallback((problem: Problem) => setProblems((old) => old.filter((each) => each !== problem)), []);
  return { problems, report, dismiss };
}

/** The state in the address: a choice is a step of the back button, typing is not. */
export function useBench(): [Bench, UpdateBench] {
  const [bench, setBench] = useState(() => fromAddress(location.hash));
  const latest = useRef(bench);
  const update = useCallback<UpdateBench>((patch, how = "push") => {
    const next = { ...latest.current, ...patch };
    const address = `#${toAddress(next)}`;
    latest.current = next;
    setBench(next);
    if (address === location.hash) return;
    if (how === "push") history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }, []);
  useEffect(() => {
    const onChange = () => {
      latest.current = fromAddress(location.hash);
      setBench(latest.current);
    };
    window.addEventListener("popstate", onChange);
    return () => window.removeEventListener("popstate", onChange);
  }, []);
  return [bench, update];
}

/** Ask again and again, more often while something is going on. */
export function useServer(report: Report): { server: WorkbenchState | null; jobs: JobAnswer[]; refresh: () => void; isLost: boolean } {
  const [server, setServer] = useState<WorkbenchState | null>(null);
  const [jobs, setJobs] = useState<JobAnswer[]>([]);
  const [isLost, setLost] = useState(false);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let timer = 0;
    let isOver = false;
    const ask = async () => {
      let isBusy = true;
      try {
        const [state, list] = [await get("state", {}), await get("jobs", {})];
        if (isOver) return;
        setServer(state);
        setJobs(list.jobs);
        setLost(false);
        isBusy = list.jobs.some(({ state }) => state === "running" || state === "queued") || [...state.models, ...state.corpora].some(({ status }) => status === "loading");
      } catch (error) {
        if (error instanceof RequestError && error.status === 0) setLost(true);
        else report(error);
      }
      if (!isOver) timer = window.setTimeout(() => void ask(), isBusy ? 700 : 4000);
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [asked]);
  return { server, jobs, refresh: () => setAsked((old) => old + 1), isLost };
}

/** What is compared with the page: its own text, or the same one, in its own model with its own changes. */
export function comparedBench(bench: Bench): Bench | null {
  if (!bench.against) return null;
  const other = fromAddress(bench.against);
  const { text, textB, example, edits, corpus } = hasText(other) ? other : bench;
  return { ...bench, text, textB, example, edits, corpus, model: other.model, off: other.off, uniform: other.uniform, mean: other.mean, keep: other.keep, layersOff: other.layersOff };
}

export interface Live {
  key: string;
  bench: Bench;
  answers: LiveAnswer[];
  sent: number; // when the request was sent, to tell how long the picture took
}

/** The picture of what is looked at; the previous one stays until the next is there. */
export function useLive(bench: Bench, isReady: boolean, report: Report): { live: Live | null; refusal: Problem | null; isWaiting: boolean; key: string } {
  const [live, setLive] = useState<Live | null>(null);
  const [refusal, setRefusal] = useState<Problem | null>(null);
  const [isWaiting, setWaiting] = useState(false);
  const [again, setAgain] = useState(0);
  const other = comparedBench(bench);
  const requests = [liveRequest(bench, other !== null), ...(other ? [liveRequest(other, true)] : [])];
  const key = JSON.stringify(requests);
  useEffect(() => {
    if (!isReady || !bench.head || !hasText(bench)) return undefined;
    const abort = new AbortController();
    const sent = performance.now();
    let timer = 0;
    void Promise.all(requests.map((request, index) => post("live", { ...request, ...numbered(`live${index}`) }, abort.signal))).then(
      (answers) => {
        if (abort.signal.aborted) return;
        setLive({ key, bench, answers, sent });
        setRefusal(null);
        setWaiting(false);
      },
      (error: unknown) => {
        if (abort.signal.aborted || !(error instanceof RequestError) || error.status === 409) return;
        if (error.status === 503) {
          setWaiting(true);
          timer = window.setTimeout(() => setAgain((old) => old + 1), 500);
        } else if (error.status === 422) setRefusal(error.problem);
        else report(error);
      },
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, isReady, again]);
  return { live, refusal, isWaiting, key };
}

/** Predictions before and after the changes, and with those of a random control. */
export function useIntervention(bench: Bench, isReady: boolean, report: Report): InterveneAnswer | null {
  const [answer, setAnswer] = useState<{ key: string; answer: InterveneAnswer } | null>(null);
  const request = { ...textOf(bench), intervention: interventionOf(bench) };
  const key = isChanged(bench) && hasText(bench) ? JSON.stringify(request) : "";
  useEffect(() => {
    if (!key || !isReady) return undefined;
    const abort = new AbortController();
    post("intervene", { ...request, ...numbered("intervene") }, abort.signal).then(
      (next) => abort.signal.aborted || setAnswer({ key, answer: next }),
      (error: unknown) => abort.signal.aborted || (error instanceof RequestError && [409, 422, 503].includes(error.status)) || report(error),
    );
    return () => abort.abort();
  }, [key, isReady]);
  return key && answer ? answer.answer : null;
}

/** The tokens before any edit, which edits are positions of. */
export function useUnedited(bench: Bench, live: Live | null, report: Report): { text: string; special: boolean }[] {
  const [tokens, setTokens] = useState<{ key: string; tokens: { text: string; special: boolean }[] }>({ key: "", tokens: [] });
  const source: LiveRequest = { ...textOf(bench), edits: [] };
  const key = JSON.stringify(source);
  useEffect(() => {
    if (!live) return undefined;
    const shown = JSON.stringify({ ...textOf(live.bench), edits: [] });
    if (!live.bench.edits.length) {
      setTokens({ key: shown, tokens: live.answers[0].run.tokens });
      return undefined;
    }
    if (shown !== key || tokens.key === key) return undefined;
    const abort = new AbortController();
    post("live", { ...source, layers: [], measures: false, predictions: false, ...numbered("tokens") }, abort.signal).then(
      (answer) => abort.signal.aborted || setTokens({ key, tokens: answer.run.tokens }),
      (error: unknown) => abort.signal.aborted || report(error),
    );
    return () => abort.abort();
  }, [live, key]);
  return tokens.tokens;
}

/** Measures and labels of all heads over the corpus; asked for again when a job is done. */
export function useMeasures(model: string, corpus: string, isReady: boolean, jobs: JobAnswer[], report: Report): MeasureList {
  const [list, setList] = useState<MeasureList>({ measures: [], labels: [] });
  const done = doneJobs(jobs);
  useEffect(() => {
    if (!isReady) return;
    get("measures", { model, corpus }).then(setList, (error: unknown) => (error instanceof RequestError && error.status === 503) || report(error));
  }, [model, corpus, isReady, done]);
  return list;
}

/** The number of finished jobs: what depends on results is asked for again when it changes. */
export function doneJobs(jobs: JobAnswer[]): number {
  return jobs.filter(({ state }) => state === "done").length;
}

const LOOKED_AT = "bertology-heads";

/** The heads that were looked at since the page was opened, also after a reload. */
export function useLookedAt(model: string, head: string): string[] {
  const [heads, setHeads] = useState<string[]>(() => JSON.parse(sessionStorage.getItem(LOOKED_AT) ?? "[]") as string[]);
  const name = `${model} ${head}`;
  useEffect(() => {
    if (!model || !head || heads.includes(name)) return;
    const next = [...heads, name];
    setHeads(next);
    sessionStorage.setItem(LOOKED_AT, JSON.stringify(next));
  }, [name]);
  return heads.filter((each) => each.startsWith(`${model} `));
}
