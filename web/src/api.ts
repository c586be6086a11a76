// Requests to the daemon, and the shapes of its answers. Every request is signed with the key of this
// tab (sign.ts), and nothing that signs is ever sent.
import { signal } from "@preact/signals";
import type { Ask, Event } from "./api.gen";
import { keep, kept } from "./kept";
import { Refused, Signer, Stranger } from "./sign";

export type * from "./api.gen"; // made of doc/api.yaml by the build
// Event content depends on eventType (doc/events.json): readers look at that first.
export type AvaEvent = Omit<Event, "content"> & { content: Record<string, any> };

export const signedIn = signal(false);

export class ApiError extends Error {
  // `ask` is the Ask as it is now, where the answer was to one that has changed since it was shown.
  constructor(readonly status: number, readonly code: string, message: string, readonly ask?: Ask) {
    super(message);
  }
}

const signer = new Signer();

// A request of this tab, to a daemon that has shown that it is ours. One that has started anew since
// refuses the first.
export async function send(method: string, path: string, body?: string, stop?: AbortSignal): Promise<Response> {
  for (let again = false; ; again = true) {
    const { url, authorization } = await signer.sign(method, path, body ?? "");
    const headers: Record<string, string> = { Authorization: authorization };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(url, { method, headers, body: body ?? null, signal: stop ?? null, cache: "no-store", credentials: "omit" });
    if (answer.status !== 401 || again) return answer;
    signer.doubt();
  }
}

// Nobody else can have our port while the stream of events is open.
export const holds = (open: boolean) => (open ? signer.trust() : signer.doubt());

async function ask(method: string, path: string, body?: unknown, stop?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await send(method, path, method === "POST" ? JSON.stringify(body ?? {}) : undefined, stop);
  } catch (e) {
    if (stop?.aborted) throw e;
    if (e instanceof Refused) {
      signedIn.value = false;
      throw new ApiError(401, "denied", e.message);
    }
    throw new ApiError(0, "away", e instanceof Stranger ? e.message : "The daemon does not answer. It may have ended: run `ava dashboard` to bring it back.");
  }
  if (answer.status === 401) signedIn.value = false;
  if (answer.ok) return answer;
  const data = await answer.json().catch(() => null);
  throw new ApiError(answer.status, data?.error?.code ?? "", data?.error?.message ?? `The daemon answered ${answer.status}.`, data?.ask);
}

async function call<T>(method: string, path: string, body?: unknown, stop?: AbortSignal): Promise<T> {
  const data = await (await ask(method, path, body, stop)).json().catch(() => null);
  if (data === null) throw new ApiError(0, "away", "The daemon's answer broke off.");
  return data as T;
}

export const get = <T>(path: string, stop?: AbortSignal) => call<T>("GET", path, undefined, stop);
export const post = <T>(path: string, body?: unknown) => call<T>("POST", path, body);

// A POST that may be sent again where its answer was lost: with the same id as before while it says the same, so
// that it is done once. `more` is no part of what it says.
const unsure = new Map<string, [says: string, id: string]>();
export async function once<T>(path: string, body: object, more: object = {}): Promise<T> {
  const says = JSON.stringify(body), was = unsure.get(path), id = was?.[0] === says ? was[1] : crypto.randomUUID();
  unsure.set(path, [says, id]);
  try {
    const answer = await post<T>(path, { ...body, ...more, request_id: id });
    unsure.delete(path);
    return answer;
  } catch (e) {
    const { status } = e as ApiError;
    if (status >= 400 && status < 500) unsure.delete(path);
    throw e;
  }
}

// A file that a run leaves, into the person's downloads.
export async function save(run: string, path: string) {
  const answer = await ask("GET", `/api/v1/runs/${run}/artifact?path=${encodeURIComponent(path)}`);
  download(await answer.blob(), path.split("/").pop()!);
}
export function download(data: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const WANTED_MS = 600000; // time for which the address is kept that somebody asked for before signing in

// The code of `ava dashboard` stands behind the #, which no server sees; it is taken out of the address
// before anything else is done. Returned: the words for a person who is not signed in.
export async function signIn(): Promise<string> {
  const code = /^#code=([0-9a-f]{32})$/.exec(location.hash)?.[1];
  const [at, wanted = ""] = kept("wanted").split(" ");
  if (code) {
    if (wanted && Date.now() - Number(at) < WANTED_MS) location.replace(wanted);
    else history.replaceState(null, "", location.pathname);
  }
  try {
    signedIn.value = await signer.open(code);
    keep("wanted", signedIn.value || !location.hash.startsWith("#/") ? "" : `${Date.now()} ${location.hash}`);
    return "";
  } catch (e) {
    return e instanceof Refused || e instanceof Stranger ? e.message : "The daemon does not answer. It may have ended: run `ava dashboard`, and open the address that it prints.";
  }
}

export async function signOut() {
  await post("/api/v1/dashboard", { sign_out: true });
  await signer.forget();
  signedIn.value = false;
}
