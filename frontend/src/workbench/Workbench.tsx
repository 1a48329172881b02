// The workbench: one screen with the text above, the heads and predictions at the left, the picture, and a panel.
import { useEffect, useRef, useState } from "preact/hooks";
import type { CorpusState, JobAnswer, JobRequest, ModelState, WorkbenchState } from "../api";
import { useDark } from "../drawing";
import { copyText } from "../clipboard";
import { csv } from "../Export";
import { download, pngOf, svgOf } from "../figure";
import { DARK, LIGHT } from "../palette";
import { type Bench, fromAddress, isChanged, liveRequest, type Panel, START, toAddress } from "./address";
import { get, getText, post, refusalOf } from "./client";
import { CorpusBrowser } from "./CorpusBrowser";
import { HeadCard } from "./HeadCard";
import { Heads } from "./Heads";
import { Jobs } from "./Jobs";
import { type Kept, LivePicture } from "./LivePicture";
import { Pins, usePins } from "./Pins";
import { Predictions } from "./Predictions";
import { changeHead, Removed } from "./Removed";
import { Search } from "./Search";
import { Keys, Loading, Problems } from "./Status";
import { TextInput } from "./TextInput";
import { type UpdateBench, useBench, useIntervention, useLive, useLookedAt, useMeasures, useProblems, useServer, useUnedited } from "./use";

const PANEL_NAMES: [Panel, string][] = [["card", "Head"], ["corpus", "Corpus"], ["search", "Search"], ["jobs", "Jobs"], ["pins", "Pins"]];

const FOLDED = 1180; // pixels: with less width the panel is below the picture

export function Workbench() {
  const { problems, report, dismiss } = useProblems();
  const [bench, updateBench] = useBench();
  const { server, jobs, refresh, isLost } = useServer(report);
  const [past, setPast] = useState<Partial<Bench>[]>([]);
  const [time, setTime] = useState<number | null>(null);
  const [message, setMessage] = useState("");
  const [help, setHelp] = useState(false);
  const [pins, setPins] = usePins();
  const kept = useRef<Kept | null>(null);
  const dark = useDark("auto");
  const palette = dark ? DARK : LIGHT;
  const model = server?.models.find(({ name }) => (bench.model ? name === bench.model : true));
  const corpus = server?.corpora.find(({ name }) => (bench.corpus ? name === bench.corpus : true));
  const named = { ...bench, model: model?.name ?? "", corpus: corpus?.name ?? "" };
  const isReady = model?.status === "ready";
  const corpusIsReady = corpus?.status === "ready";
  const isShown = isReady && bench.head !== "";
  const { live, refusal, isWaiting, key } = useLive(bench, isShown, report);
  const change = useIntervention(bench, isShown, report);
  const tokens = useUnedited(bench, live, report);
  const measures = useMeasures(bench.model, bench.corpus, isReady && corpusIsReady, jobs, report);
  const lookedAt = useLookedAt(model?.name ?? "", isShown ? bench.head : "");

  useEffect(() => void document.documentElement.setAttribute("data-theme", dark ? "dark" : "light"), [dark]);
  useEffect(() => openFirst(bench, model, server?.gallery[0]?.text ?? "", updateBench), [model?.status, bench]);
  useEffect(() => {
    if (server && (!model || !corpus)) openKnown(server, model, corpus, bench, updateBench, report);
  }, [server === null, model?.name, corpus?.name]);
  useEffect(() => {
    if (model?.status === "not loaded") post("models/load", { model: model.name }).then(refresh, report);
  }, [model?.name, model?.status]);
  useEffect(() => {
    const other = bench.against && fromAddress(bench.against).model;
    if (other && server?.models.some(({ name, status }) => name === other && status === "not loaded")) post("models/load", { model: other }).then(refresh, report);
  }, [bench.against, server === null]);
  const update: UpdateBench = (patch, how) => {
    const changes = (["off", "uniform", "mean", "keep", "layersOff"] as const).filter((name) => name in patch);
    if (changes.length) setPast((old) => [...old.slice(-49), { off: bench.off, uniform: bench.uniform, mean: bench.mean, keep: bench.keep, layersOff: bench.layersOff }]);
    updateBench(patch, how);
  };
  const undo = () => {
    const last = past[past.length - 1];
    if (!last) return;
    setPast(past.slice(0, -1));
    updateBench(last);
  };
  const startJob = (request: JobRequest) => {
    post("jobs", request).then((job) => {
      setMessage(`${job.title}: ${job.state}`);
      refresh();
    }, report);
  };
  const pin = () => {
    const address = toAddress({ ...bench, panel: "card", query: "" });
    if (!kept.current || pins.some((each) => each.address === address)) return;
    setPins([...pins, { address, caption: captionOf(bench, kept.current.caption) }]);
    setMessage("Pinned.");
  };
  const openPanel = (panel: Panel) => {
    update({ panel });
    // Where columns stand below each other, the panel may be off the screen.
    if (window.innerWidth <= FOLDED) document.querySelector(".side-panel")?.scrollIntoView({ block: "start" });
  };
  const say = (text: string) => setMessage(text);
  useKeys({ bench, update, undo, pin, help: () => setHelp(true) });

  const running = jobs.filter(({ state }) => state === "running" || state === "queued");
  const counts: Partial<Record<Panel, number>> = { jobs: running.length, pins: pins.length };
  const shape = { layers: model?.layers ?? 0, heads: model?.heads ?? 0 };
  const answers = live?.answers ?? [];
  const status = isWaiting ? "waiting" : time === null ? "" : `${Math.round(time)} ms`;
  return (
    <div class="views workbench" data-theme={dark ? "dark" : "light"} data-ready={isShown && live ? live.key : ""} data-current={String(live?.key === key)}>
      <header class="top">
        <h1>bertology</h1>
        <nav aria-label="Panels">
          {PANEL_NAMES.map(([panel, name]) => <button type="button" key={panel} data-panel={panel} aria-pressed={bench.panel === panel} onClick={() => openPanel(panel)}>{name}{counts[panel] ? <b> {counts[panel]}</b> : ""}</button>)}
        </nav>
        {server && <div class="sources">
          <label><span class="spoken">Model</span><select data-choice="Model" value={model?.name ?? ""} onChange={(event) => update({ model: event.currentTarget.value, off: [], uniform: [], mean: [], keep: [], layersOff: [], token: -1 })}>{server?.models.map(({ name }) => <option key={name} value={name}>{name}</option>)}</select></label>
          <label><span>against</span><select data-choice="Against" value={bench.against} onChange={(event) => update({ against: event.currentTarget.value, view: event.currentTarget.value ? "difference" : bench.view === "difference" ? "head" : bench.view })}>
            <option value="">nothing</option>
            {server?.models.filter(({ name }) => name !== model?.name).map(({ name }) => <option key={name} value={toAddress({ ...START, model: name })}>{name}</option>)}
            {model && isChanged(bench) && <option value={toAddress({ ...START, model: model.name })}>{model.name}, unchanged</option>}
            {bench.against && /(^|&)(text|example)=/.test(bench.against) && <option value={bench.against}>pinned: {describePin(bench.against)}</option>}
          </select></label>
          {server.corpora.length > 1 && <label><span>on</span><select data-choice="Corpus" aria-label="Corpus" value={corpus?.name ?? ""} onChange={(event) => update({ corpus: event.currentTarget.value, ...(bench.example !== null && { example: 0, edits: [], token: -1 }) })}>{server.corpora.map(({ name }) => <option key={name} value={name}>{name}</option>)}</select></label>}
          {corpus && <span class="note">{server.corpora.length > 1 ? "" : `${corpus.name}, `}{corpusIsReady ? `${corpus.examples.toLocaleString("en")} texts` : corpus.status}</span>}
          <button type="button" class="plain" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick={() => setHelp(true)}>?</button>
        </div>}
      </header>
      <TextInput bench={bench} update={update} tokens={tokens} answer={answers[0] ?? null} gallery={server?.gallery ?? []} maxCharacters={server?.max_characters ?? 2000} status={status} />
      <Problems problems={problems} dismiss={dismiss} isLost={isLost} />
      {refusal && <p class="refusal" role="alert">{refusal.paragraph}</p>}
      <div class="columns">
        <div class="left-column">
          {isReady && <Heads bench={bench} update={update} answers={answers} list={measures} shape={shape} lookedAt={lookedAt} palette={palette} />}
          {isReady && <Removed bench={bench} update={update} undo={past.length ? undo : null} />}
          {isReady && <Predictions bench={bench} taskHeads={model.task_heads} answers={answers} change={change} startJob={startJob} report={report} />}
        </div>
        <main class="middle-column">
          {!isReady ? <Loading server={server} /> : <LivePicture bench={bench} update={update} live={live} liveKey={key} labels={measures.labels} palette={palette} keep={(next) => void (kept.current = next)} drawn={setTime} />}
          {answers.flatMap(({ notes }) => notes).map((note) => <p class="note" key={note}>{note}</p>)}
        </main>
        <aside class="side-panel" aria-label="Panel">
          {bench.panel === "card" && <HeadCard bench={named} {...{ update, jobs, startJob, report }} isReady={isReady && corpusIsReady} />}
          {bench.panel === "corpus" && <CorpusBrowser key={named.corpus} {...{ corpus, update, report }} />}
          {bench.panel === "search" && <Search bench={named} {...{ update, server, jobs, tokens, startJob, refresh, report }} />}
          {bench.panel === "jobs" && <Jobs bench={named} {...{ server, jobs, startJob, refresh, report }} theme={dark ? "dark" : "light"} />}
          {bench.panel === "pins" && <Pins {...{ bench, update, pins, setPins, report }} />}
        </aside>
      </div>
      <Footer bench={named} hasCard={isReady && corpusIsReady} kept={kept} background={palette.background} pin={pin} say={say} report={(error) => report(error)} message={message} progress={progressOf(running)} />
      {help && <Keys close={() => setHelp(false)} />}
    </div>
  );
}

/** A model or a corpus in the address that this server does not have: the first one is shown, and that is said. */
function openKnown(server: WorkbenchState, model: ModelState | undefined, corpus: CorpusState | undefined, bench: Bench, update: UpdateBench, report: (error: unknown) => void): void {
  const lacks = [...(model ? [] : [`the model ${bench.model}`]), ...(corpus ? [] : [`the corpus ${bench.corpus}`])];
  const known = [...(model ? [] : server.models), ...(corpus ? [] : server.corpora)].map(({ name }) => name);
  report(refusalOf(`The address names ${lacks.join(" and ")}, which this server does not have`, known.join(", "), "The first one is shown; start the server with --allow or --allow-corpus for more"));
  update({ ...(!model && { model: "", off: [], uniform: [], mean: [], keep: [], layersOff: [] }), ...(!corpus && { corpus: "", example: null }) }, "replace");
}

/** The first text and head, if the address has none; a head that the model lacks becomes the nearest one. */
function openFirst(bench: Bench, model: ModelState | undefined, text: string, update: UpdateBench): void {
  if (model?.status !== "ready") return;
  const [layer, head] = (bench.head || "4-4").split("-").map(Number);
  const name = `${Math.max(1, Math.min(layer, model.layers))}-${Math.max(1, Math.min(head, model.heads))}`;
  const patch: Partial<Bench> = name === bench.head ? {} : { head: name };
  if (!location.hash.includes("text=") && bench.text === "" && bench.example === null && text && !bench.head) patch.text = text;
  if (Object.keys(patch).length) update(patch, "replace");
}

function captionOf(bench: Bench, caption: string): string {
  const changes = [...bench.off.map((head) => `${head} off`), ...bench.uniform.map((head) => `${head} uniform`), ...bench.mean.map((head) => `${head} mean`), ...bench.keep.map((head) => `only ${head}`), ...bench.layersOff.map((layer) => `layer ${layer} off`)];
  return [caption, ...(changes.length ? [`Changed: ${changes.join(", ")}.`] : [])].join(" ");
}

/** The job that runs, and how many wait. */
function progressOf(jobs: JobAnswer[]): string {
  const [job] = [...jobs].sort((a, b) => Number(b.state === "running") - Number(a.state === "running"));
  if (!job) return "";
  return `${job.title}: ${job.state === "running" && job.fraction !== null ? `${Math.round(100 * job.fraction)} %` : job.state}${jobs.length > 1 ? ` · ${jobs.length - 1} waiting` : ""}`;
}

function describePin(address: string): string {
  const { text, example, model } = fromAddress(address);
  return `${example === null ? text.slice(0, 30) : `text ${example + 1}`}${model ? ` (${model})` : ""}`;
}

interface KeyActions {
  bench: Bench;
  update: UpdateBench;
  undo: () => void;
  pin: () => void;
  help: () => void;
}

/** Letters act wherever the focus is, but never in a field. */
function useKeys(actions: KeyActions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || target.closest?.("input, textarea, select, dialog")) return;
      const { bench, update, undo, pin, help } = latest.current;
      const acts: Record<string, () => void> = {
        "?": help,
        u: undo,
        p: pin,
        x: () => bench.head && update(changeHead(bench, "off", bench.head)),
        t: () => document.querySelector<HTMLElement>(".text-input input")?.focus(),
        g: () => document.querySelector<HTMLElement>('.cells [aria-pressed="true"]')?.focus(),
        m: () => document.querySelector<HTMLElement>(".tokens-row button:not(:disabled)")?.focus(),
        "/": () => {
          update({ panel: "search" });
          setTimeout(() => document.querySelector<HTMLElement>('[data-choice="Query"]')?.focus(), 50);
        },
        Escape: () => bench.token >= 0 && update({ token: -1 }, "replace"),
        ...Object.fromEntries((["head", "matrix", "neuron", "model"] as const).map((view, index) => [String(index + 1), () => update({ view })])),
      };
      if (!(event.key in acts)) return;
      event.preventDefault();
      acts[event.key]();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}

interface FooterProps {
  bench: Bench; // with the names of the model and the corpus
  hasCard: boolean; // whether numbers over the corpus can be asked for
  kept: { current: Kept | null };
  background: string;
  pin: () => void;
  say: (text: string) => void;
  report: (error: unknown) => void;
  message: string;
  progress: string;
}

function Footer({ bench, hasCard, kept, background, pin, say, report, message, progress }: FooterProps) {
  const copy = (name: string, text: string) => void copyText(text).then(() => say(`${name} copied.`));
  const save = (suffix: string, blob: Blob) => {
    download(`head-${bench.head}.${suffix}`, blob);
    say(`head-${bench.head}.${suffix} saved.`);
  };
  const figure = () => kept.current?.figure() ?? null;
  const command = (name: "command_line" | "python") => void post("commands", liveRequest(bench, false)).then((commands) => {
    copy(name === "python" ? "Python" : "Command line", commands[name]);
    if (commands.notes.length) say(`Copied. ${commands.notes.join(" ")}`);
  }, report);
  const bibtex = async () => {
    const card = hasCard ? (await get("heads/{head}", { head: bench.head, model: bench.model, corpus: bench.corpus })).citations : [];
    const keys = [...new Set([...(kept.current?.citations ?? []), ...card])];
    if (!keys.length) say("Nothing to cite: attention itself, and no number of an analysis.");
    else save("bib", new Blob([await getText("bibtex", { keys: keys.join(",") })], { type: "text/plain" }));
  };
  return (
    <footer>
      <button type="button" class="plain" data-do="pin" onClick={pin}>Pin this</button>
      <button type="button" class="plain" data-do="link" onClick={() => copy("Link", `${location.href.split("#")[0]}#${toAddress(bench)}`)}>Copy link</button>
      <span class="group">
        <button type="button" class="plain" data-do="svg" onClick={() => figure() && save("svg", new Blob([svgOf(figure()!, background)], { type: "image/svg+xml" }))}>SVG</button>
        <button type="button" class="plain" data-do="png" onClick={() => figure() && void pngOf(figure()!, background).then((blob) => save("png", blob))}>PNG</button>
        <button type="button" class="plain" data-do="csv" onClick={() => kept.current && save("csv", new Blob([csv(kept.current.picture)], { type: "text/csv" }))}>CSV</button>
        <button type="button" class="plain" data-do="print" onClick={() => window.print()}>PDF</button>
        <button type="button" class="plain" data-do="caption" onClick={() => kept.current && copy("Caption", kept.current.caption)}>Caption</button>
        <button type="button" class="plain" data-do="bibtex" title="The papers behind the picture and the numbers of the head" onClick={() => void bibtex().catch(report)}>BibTeX</button>
      </span>
      <span class="group">
        <button type="button" class="plain" data-do="command" onClick={() => command("command_line")}>Command line</button>
        <button type="button" class="plain" data-do="python" onClick={() => command("python")}>Python</button>
      </span>
      <output class="note" role="status">{message}</output>
      <span class="note progress" data-progress>{progress}</span>
    </footer>
  );
}
