// One stream of events for the whole tab, and of the Items that are made of them, read with fetch since
// EventSource signs nothing. It is resumed with the last event it gave, whose Item may have been cut off,
// so that nothing is lost or given twice, also when the daemon was restarted meanwhile.
import { signal } from "@preact/signals";
import { holds, send, signedIn, type AvaEvent, type Item } from "./api";
import { Refused } from "./sign";

export type Link = "connecting" | "live" | "away";
export const link = signal<Link>("connecting");

type OnEvent = (e: AvaEvent) => void;
type OnItem = (i: Item) => void;
type OnMessage = (m: { type: string; sessionId: string }) => void;

const WAIT_MS = [250, 500, 1000, 2000, 5000];
const SILENCE_MS = 40000; // the daemon says something every 15 s
const HIDDEN_MS = 10000;
const AGAIN_MS = 2000; // until a reading that failed is tried again
const STAY_MS = 240000; // the daemon ends after ten minutes without a connection

// A browser has six connections to one address for all its tabs together: one that nobody has looked
// at for a while gives its own back, and goes on where it was when it is looked at. Meanwhile it asks
// for something now and then, so that the daemon does not end as idle: the next one signs nobody in.
function shown(): Promise<void> {
  return new Promise((done) => {
    const staying = setInterval(() => void send("GET", "/api/v1/health").catch(() => {}), STAY_MS);
    const look = () => {
      if (document.hidden) return;
      clearInterval(staying);
      document.removeEventListener("visibilitychange", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

export class Stream {
  private events = new Set<OnEvent>();
  private items = new Set<OnItem>();
  private messages = new Set<OnMessage>();
  private again = new Set<() => void>();
  private tries = 0;
  private lsn = 0; // the last event of this machine
  private places = ""; // of other machines: what stands behind the lsn in the last id
  private item = 0; // the last Item
  private stop = new AbortController();
  private hiding = 0;

  // Events behind this lsn are wanted. Who listens before hears them all.
  begin(after: number) {
    this.lsn = this.item = after;
    document.addEventListener("visibilitychange", () => this.hide());
    this.hide();
    void this.run();
  }
  onEvent(f: OnEvent) {
    this.events.add(f);
    return () => this.events.delete(f);
  }
  onItem(f: OnItem) {
    this.items.add(f);
    return () => this.items.delete(f);
  }
  onMessage(f: OnMessage) {
    this.messages.add(f);
    return () => this.messages.delete(f);
  }
  // The connection is there again after it was lost: what has no events is to be asked anew.
  onAgain(f: () => void) {
    this.again.add(f);
    return () => this.again.delete(f);
  }

  // What stands is read a page at a time, at once and after a lost connection, and again where that fails; what
  // comes meanwhile is given to `put` and taken behind it, at most every `ms`. `page`: whether there is more.
  // `told` hears why it cannot be read, and "" when it was.
  following<T>(page: (stop: AbortSignal) => Promise<boolean>, take: (list: T[]) => void, told: (why: string) => void, ms = 0) {
    const stop = new AbortController(), late: T[] = [];
    let whole = false, again = 0, batch = 0;
    const flush = () => {
      batch = 0;
      if (whole) take(late.splice(0));
    };
    const read = async () => {
      clearTimeout(again);
      whole = false;
      try {
        while (await page(stop.signal));
        whole = true;
        flush();
        told("");
      } catch (e) {
        if (stop.signal.aborted) return;
        told((e as Error).message);
        again = window.setTimeout(read, AGAIN_MS);
      }
    };
    const put = (one: T) => {
      late.push(one);
      if (!ms) flush();
      else batch ||= window.setTimeout(() => requestAnimationFrame(flush), ms);
    };
    const end = () => {
      stop.abort();
      off();
      for (const timer of [again, batch]) clearTimeout(timer);
    };
    const off = this.onAgain(read);
    void read();
    return { put, end };
  }

  private hide() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = window.setTimeout(() => this.stop.abort(), HIDDEN_MS);
  }

  private async run() {
    let was = false;
    while (signedIn.value) {
      if (was) await shown();
      const stop = (this.stop = new AbortController());
      let timer = setTimeout(() => stop.abort(), SILENCE_MS);
      try {
        const answer = await send("GET", `/api/v1/events?agents=true&items=1&after=${Math.max(0, this.lsn - 1)}${encodeURIComponent(this.places)}`, undefined, stop.signal);
        if (answer.status === 401) signedIn.value = false;
        if (!answer.ok || !answer.body) throw new Error(String(answer.status));
        await holds(true);
        link.value = "live";
        this.tries = 0;
        if (was) for (const f of this.again) f();
        was = true;
        await frames(answer.body, (id, type, value, places, machine) => {
          clearTimeout(timer);
          timer = setTimeout(() => stop.abort(), SILENCE_MS);
          if (places) this.places = places;
          if (machine) for (const f of this.events) f(value); // each comes once
          else this.take(id, type, value);
        });
      } catch (e) {
        if (e instanceof Refused) signedIn.value = false; // else it is tried again below
      }
      void holds(false);
      clearTimeout(timer);
      link.value = this.tries === 0 ? "connecting" : "away";
      const wait = WAIT_MS[Math.min(this.tries++, WAIT_MS.length - 1)]!;
      await new Promise((r) => setTimeout(r, wait));
    }
  }

  private take(id: number, type: string, value: any) {
    if (!value) return; // a sign of life
    if (id === 0) {
      if (value.type) for (const f of this.messages) f(value);
    } else if (type === "item" && id > this.item) {
      this.item = id;
      for (const f of this.items) f(value);
    } else if (type !== "item" && id > this.lsn) {
      this.lsn = id;
      for (const f of this.events) f(value);
    }
  }
}

// The frames of a body until it ends; one without data has none: null.
async function frames(body: ReadableStream<Uint8Array>, on: (id: number, type: string, value: any, places: string, machine: boolean) => void) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop()!;
    for (const frame of whole) {
      let id = 0, type = "", data = "", places = "", machine = false;
      for (const line of frame.split("\n")) {
        if (line.startsWith("id: ")) [id, places] = [parseInt(line.slice(4)), line.slice(4).replace(/^\d+/, "")];
        else if (line.startsWith("machine: ")) machine = true;
        else if (line.startsWith("event: ")) type = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      on(id, type, data ? JSON.parse(data) : null, places, machine);
    }
  }
}

// Windows side by side share six connections: two of them may have a second stream, so that three windows still get
// their answers. Without a seat it is tried again.
async function seat(f: () => Promise<void>) {
  const take = async (lock: Lock | null) => !!lock && (await f(), true);
  for (const name of ["seat 1", "seat 2"]) if (await navigator.locks.request(name, { ifAvailable: true }, take)) return;
}

// A second stream, for show only, such as the words of a model while it writes: of the thing that is open,
// for as long as somebody looks at it. `on` hears "open" when it begins, also anew. Returned: its end.
export function watch(path: string, on: (type: string, value: any, id: number) => void): () => void {
  let stop = new AbortController(), over = false;
  const hide = () => document.hidden && stop.abort();
  const run = async () => {
    for (let tries = 0; ; ) {
      await shown();
      if (over || !signedIn.value) return;
      stop = new AbortController();
      try {
        await seat(async () => {
          const { ok, body } = await send("GET", path, undefined, stop.signal);
          if (!ok || !body) return;
          on("open", null, 0);
          tries = 0;
          await frames(body, (id, type, value) => value && !over && on(type, value, id));
        });
      } catch {} // the stream of the tab says that the daemon is away
      await new Promise((r) => setTimeout(r, WAIT_MS[Math.min(tries++, WAIT_MS.length - 1)]));
    }
  };
  document.addEventListener("visibilitychange", hide);
  void run();
  return () => {
    over = true;
    stop.abort();
    document.removeEventListener("visibilitychange", hide);
  };
}
