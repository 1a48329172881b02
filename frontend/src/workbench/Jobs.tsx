// Jobs: forms from the declarations of analyses, the queue with its progress, and results with their figures.
import { useEffect, useState } from "preact/hooks";
import type { AnalysisAnswer, ClaimAnswer, JobAnswer, JobRequest, KeptCommands, OptionAnswer, WorkbenchState } from "../api";
import { useWidth } from "../drawing";
import { formatPercent } from "../numbers";
import type { Bench } from "./address";
import { get, post, remove } from "./client";
import { comparedBench, type Report } from "./use";

interface Props {
  bench: Bench;
  server: WorkbenchState | null;
  jobs: JobAnswer[];
  theme: "light" | "dark";
  startJob: (request: JobRequest) => void;
  refresh: () => void;
  report: Report;
}

export function Jobs({ bench, server, jobs, theme, startJob, refresh, report }: Props) {
  const [kind, setKind] = useState<"analysis" | "claims" | "report">("analysis");
  const [shown, setShown] = useState("");
  const against = comparedBench(bench)?.model || server?.against || "";
  return (
    <section class="jobs" aria-label="Jobs">
      <h2 class="title">Jobs</h2>
      <div class="words" role="group" aria-label="New job">
        {(["analysis", "claims", "report"] as const).map((each) => <button type="button" key={each} data-kind={each} aria-pressed={kind === each} onClick={() => setKind(each)}>{each}</button>)}
      </div>
      {kind === "analysis" ? <AnalysisForm {...{ bench, against, startJob, report }} /> : <ClaimForm key={kind} kind={kind} {...{ bench, against, startJob, report }} />}
      <h3>Queue</h3>
      {!jobs.length && <p class="note">No job yet. Jobs go on when the page is closed, and after a restart of the server.</p>}
      <ul class="jobs-list">
        {jobs.map((job) => (
          <JobLine key={job.id} job={job} refresh={refresh} report={report} isOpen={shown === job.id} toggle={job.has_result ? () => setShown(shown === job.id ? "" : job.id) : undefined}>
            {shown === job.id && <JobResult job={job} theme={theme} report={report} />}
          </JobLine>
        ))}
      </ul>
    </section>
  );
}

interface LineProps {
  job: JobAnswer;
  refresh: () => void;
  report: Report;
  isOpen?: boolean;
  toggle?: () => void;
  children?: preact.ComponentChildren;
}

export function JobLine({ job, refresh, report, isOpen, toggle, children }: LineProps) {
  const act = (request: Promise<unknown>) => void request.then(refresh, report);
  const isOver = job.state === "done" || job.state === "failed" || job.state === "cancelled";
  const { id, request } = job;
  const options = Object.entries(request.options ?? {}).map(([name, value]) => `${name} ${String(value)}`).join(", ");
  return (
    <li data-job={job.state} data-title={job.title}>
      <div class="spread">
        <b>{job.title}</b>
        <span class="state">{job.state}{job.state === "running" && job.fraction !== null && ` ${formatPercent(job.fraction)}`}</span>
      </div>
      <p class="note">{request.model}{request.against && ` against ${request.against}`} on {request.corpus}{request.limit ? `, first ${request.limit}` : ""}{options && ` · ${options}`}{job.restarts > 0 && ` · restarted ${job.restarts} times`}</p>
      {job.state === "running" && <progress max={1} value={job.fraction ?? undefined} aria-label={`Progress of ${job.title}`} />}
      {!isOver && <p class="note">{job.step}{job.seconds_left !== null && `${job.step ? " · " : ""}about ${duration(job.seconds_left)} ${job.state === "running" ? "left" : "once it runs"}`}</p>}
      {job.problem && <p class="problem">{job.problem.paragraph}</p>}
      <div class="row">
        {toggle && <button type="button" data-do="show-result" aria-expanded={isOpen} onClick={toggle}>{isOpen ? "Hide result" : "Show result"}</button>}
        {!isOver && <button type="button" data-do="cancel" aria-label={`Cancel ${job.title}`} onClick={() => act(post("jobs/{id}/cancel", { id }))}>Cancel</button>}
        {(job.state === "failed" || job.state === "cancelled") && <button type="button" data-do="retry" aria-label={`Queue ${job.title} again`} onClick={() => act(post("jobs/{id}/retry", { id }))}>Again</button>}
        {isOver && <button type="button" data-do="remove" aria-label={`Remove ${job.title}`} onClick={() => act(remove(id))}>Remove</button>}
      </div>
      {children}
    </li>
  );
}

function duration(seconds: number): string {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
}

const PIXELS_PER_MM = 96 / 25.4;

interface ClaimRecord {
  id: string;
  claim: string;
  paper: string;
  verdict: string;
  answer: string;
}

function JobResult({ job, theme, report }: { job: JobAnswer; theme: "light" | "dark"; report: Report }) {
  const [commands, setCommands] = useState<KeptCommands | null>(null);
  const [claims, setClaims] = useState<ClaimRecord[]>([]);
  const [figure, width] = useWidth();
  // The figure is drawn as wide as its panel, so that its panels stand side by side where there is room.
  const millimetres = Math.min(400, Math.max(60, Math.round(width / PIXELS_PER_MM))) * Number(width > 0);
  const base = `api/jobs/${encodeURIComponent(job.id)}`;
  const { kind } = job.request;
  useEffect(() => {
    get("jobs/{id}/commands", { id: job.id }).then(setCommands, report);
    if (kind === "claims") get("jobs/{id}/result", { id: job.id }).then((result) => setClaims((result as { claims?: ClaimRecord[] }).claims ?? []), report);
  }, [job.id]);
  return (
    <div class="result">
      {kind === "analysis" && <figure class="figure" ref={figure}><a href={`${base}/figure?theme=${theme}`} target="_blank" rel="noopener">{millimetres > 0 && <img src={`${base}/figure?theme=${theme}&width_mm=${millimetres}`} alt={`Figure of ${job.title}`} />}</a></figure>}
      {kind === "claims" && <ul class="claims">{claims.map((claim) => <li key={claim.id}><b class={`verdict ${claim.verdict}`}>{claim.verdict}</b> {claim.claim} <span class="note">{claim.paper}. {claim.answer}</span></li>)}</ul>}
      <p class="row">
        {job.has_report && <a href={`${base}/report`} download>Report</a>}
        {kind === "analysis" && <><a href={`${base}/csv`} download>CSV</a><a href={`${base}/bibtex`} download={`${job.title.replace("/", "-")}.bib`}>BibTeX</a></>}
        <a href={`${base}/result`} download={`${job.title.replace("/", "-")}.json`}>JSON</a>
      </p>
      {commands && <><p class="note">{commands.notes.join(" ")}</p><pre tabIndex={0} aria-label="Command line">{commands.command_line}</pre><pre tabIndex={0} aria-label="Python">{commands.python}</pre></>}
    </div>
  );
}

interface FormProps {
  bench: Bench;
  against: string;
  startJob: Props["startJob"];
  report: Report;
}

function AnalysisForm({ bench, against, startJob, report }: FormProps) {
  const [analyses, setAnalyses] = useState<AnalysisAnswer[]>([]);
  const [name, setName] = useState("attention/entropy");
  const [values, setValues] = useState<Record<string, string>>({});
  const [like, setLike] = useState("");
  const [limit, setLimit] = useState("");
  useEffect(() => void get("analyses", {}).then((list) => setAnalyses(list.analyses), report), []);
  const analysis = analyses.find((each) => each.name === name);
  const choose = (next: string) => {
    setName(next);
    setValues({});
    setLike("");
  };
  const submit = () => {
    const options = Object.fromEntries(Object.entries(values).filter(([option]) => analysis?.options.some((each) => each.name === option)).map(([option, text]) => [option, parse(analysis!.options.find((each) => each.name === option)!, text)]));
    startJob({ kind: "analysis", analysis: name, options, like, limit: limit ? Number(limit) : null, model: bench.model, corpus: bench.corpus, against: analysis?.needs_against ? against : "" });
  };
  return (
    <form class="stack" aria-label="Analysis" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <label><span>Analysis</span><select data-choice="Analysis" value={name} onChange={(event) => choose(event.currentTarget.value)}>{analyses.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}</select></label>
      {analysis && (
        <>
          <p class="note">{analysis.question} {analysis.citations.join("; ")}</p>
          {analysis.needs_against && <p class="note">Compared with {against || "no model: start the server with --against"}.</p>}
          {analysis.annotations.length > 0 && <p class="note">Needs annotations: {analysis.annotations.join(", ")}.</p>}
          <details>
            <summary>Options</summary>
            {analysis.presets.length > 0 && <label><span>Like a paper</span><select value={like} onChange={(event) => setLike(event.currentTarget.value)}><option value="">defaults</option>{analysis.presets.map((paper) => <option key={paper} value={paper}>{paper}</option>)}</select></label>}
            <label title="Only so many texts of the corpus"><span>First texts only</span><input type="number" min={1} value={limit} placeholder="all" onInput={(event) => setLimit(event.currentTarget.value)} /></label>
            {analysis.options.map((option) => <OptionField key={option.name} option={option} value={values[option.name]} set={(text) => setValues((old) => without(old, option, text))} />)}
          </details>
        </>
      )}
      <button type="submit" class="primary" disabled={!analysis || (analysis.needs_against && !against)}>Start</button>
    </form>
  );
}

/** The values with one changed; an empty or default one is left out. */
function without(values: Record<string, string>, option: OptionAnswer, text: string): Record<string, string> {
  const { [option.name]: _, ...others } = values;
  return text === String(option.default ?? "") || (text === "" && option.type !== "str") ? others : { ...others, [option.name]: text };
}

function OptionField({ option, value, set }: { option: OptionAnswer; value: string | undefined; set: (text: string) => void }) {
  const shown = value ?? String(option.default ?? "");
  const isClosed = option.type === "bool" || option.type === "choice";
  return (
    <label title={option.description}>
      <span>{option.flag}</span>
      {isClosed
        ? <select data-option={option.name} value={shown} onChange={(event) => set(event.currentTarget.value)}>{(option.type === "bool" ? ["true", "false"] : option.choices).map((each) => <option key={each} value={each}>{option.type === "bool" ? (each === "true" ? "yes" : "no") : each}</option>)}</select>
        : <input type="text" data-option={option.name} value={shown} placeholder={option.choices.join(", ")} onChange={(event) => set(event.currentTarget.value.trim())} />}
    </label>
  );
}

function parse(option: OptionAnswer, text: string): string | number | boolean {
  if (option.type === "bool") return text === "true";
  return (option.type === "int" || option.type === "float") && text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function ClaimForm({ kind, bench, against, startJob, report }: FormProps & { kind: "claims" | "report" }) {
  const [claims, setClaims] = useState<ClaimAnswer[]>([]);
  const [paper, setPaper] = useState("");
  const [limit, setLimit] = useState("");
  const [full, setFull] = useState(false);
  useEffect(() => void get("claims", {}).then((list) => setClaims(list.claims), report), []);
  const papers = [...new Set(claims.map((claim) => claim.paper))].sort();
  const chosen = claims.filter((claim) => (paper ? claim.paper === paper : full || !claim.slow));
  return (
    <form class="stack" aria-label={kind === "claims" ? "Claims" : "Report"} onSubmit={(event) => { event.preventDefault(); startJob({ kind, papers: paper ? [paper] : [], full, limit: limit ? Number(limit) : null, model: bench.model, corpus: bench.corpus, against }); }}>
      <label><span>Paper</span><select data-choice="Paper" value={paper} onChange={(event) => setPaper(event.currentTarget.value)}><option value="">all</option>{papers.map((each) => <option key={each} value={each}>{each}</option>)}</select></label>
      <label><span>First texts only</span><input type="number" data-choice="Limit" min={1} value={limit} placeholder="all" onInput={(event) => setLimit(event.currentTarget.value)} /></label>
      {!paper && <label class="check"><input type="checkbox" checked={full} onChange={(event) => setFull(event.currentTarget.checked)} /> also claims that take minutes</label>}
      <p class="note">{chosen.length} published findings are tested{kind === "report" ? " and written as a page" : ""}{paper && chosen[0] ? `, for example: ${chosen[0].statement}` : ""}.</p>
      <button type="submit" class="primary" disabled={!claims.length}>Start</button>
    </form>
  );
}
