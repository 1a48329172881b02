// Requests to the server. Addresses are relative to the page, so that it works behind a path prefix.
import type { Endpoints, Problem } from "../api";

export class RequestError extends Error {
  constructor(readonly status: number, readonly problem: Problem) {
    super(problem.paragraph);
  }
}

/** A path of the API with its values: "jobs/{id}/cancel" and { id } become "jobs/7/cancel". */
type Path<Method extends string> = keyof Endpoints extends infer Key ? (Key extends `${Method} api/${infer Rest}` ? Rest : never) : never;

const CLIENT = Math.random().toString(36).slice(2, 14);
let sequence = 0;

/** Names of a page and of its newest request: the server ends older ones of the same kind. */
export function numbered(kind: string): { client: string; sequence: number } {
  return { client: `${CLIENT}-${kind}`, sequence: ++sequence };
}

export async function get<Name extends Path<"GET">>(path: Name, values: Endpoints[`GET api/${Name}`]["request"]): Promise<Endpoints[`GET api/${Name}`]["answer"]> {
  return (await getRaw(path, values)).json();
}

/** The answer as it was sent: references, a table. */
export async function getText<Name extends Path<"GET">>(path: Name, values: Endpoints[`GET api/${Name}`]["request"]): Promise<string> {
  return (await getRaw(path, values)).text();
}

export async function post<Name extends Path<"POST">>(path: Name, values: Endpoints[`POST api/${Name}`]["request"], signal?: AbortSignal): Promise<Endpoints[`POST api/${Name}`]["answer"]> {
  return (await postRaw(path, values, signal)).json();
}

/** The answer as it was sent: a page or a table. */
export async function postText<Name extends Path<"POST">>(path: Name, values: Endpoints[`POST api/${Name}`]["request"]): Promise<string> {
  return (await postRaw(path, values)).text();
}

export async function remove(id: string): Promise<void> {
  await send(`api/jobs/${encodeURIComponent(id)}`, { method: "DELETE" });
}

function getRaw(path: string, values: unknown): Promise<Response> {
  const [address, rest] = fill(path, values as Record<string, unknown>);
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value !== "" && value !== undefined && value !== null).map(([name, value]) => [name, String(value)]));
  return send(query.size ? `${address}?${query.toString()}` : address, { method: "GET" });
}

function postRaw(path: string, values: unknown, signal?: AbortSignal): Promise<Response> {
  const [address, rest] = fill(path, values as Record<string, unknown>);
  return send(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(rest), signal });
}

function fill(path: string, values: Record<string, unknown>): [string, Record<string, unknown>] {
  const rest = { ...values };
  const address = path.replace(/{(\w+)}/g, (_, name: string) => {
    const value = String(rest[name]);
    delete rest[name];
    return encodeURIComponent(value);
  });
  return [`api/${address}`, rest];
}

async function send(address: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, init);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new RequestError(0, problemOf("The server does not answer", "a server that runs", "Start `bertology serve` again; what was computed is in its store"));
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => null)) as Problem | null;
  throw new RequestError(response.status, problem?.paragraph ? problem : problemOf(`The server answered with status ${response.status}`, "an answer", "Try it again"));
}

/** A refusal of the page itself. */
export function refusalOf(problem: string, expected: string, remedy: string): RequestError {
  return new RequestError(422, problemOf(problem, expected, remedy));
}

function problemOf(problem: string, expected: string, remedy: string): Problem {
  return { problem, expected, remedy, paragraph: `${problem}. Expected: ${expected}. ${remedy}.` };
}
