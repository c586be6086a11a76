// Signing in and signing of this tab (doc/SECURITY.md, "The page"): both sides show that they know a key, and none is ever
// sent. A key of the browser, not extractable, stands in IndexedDB, where the next tab and a reload find it; it ends with
// the daemon. The tab's own key stands in memory alone, where no page finds it that somebody else serves at this address
// while the daemon is away: with it this tab goes on later.

// The daemon does not know our key, and the session is over.
export class Refused extends Error {}
// Another program answers, or stands between. The daemon may come back.
export class Stranger extends Error {}

const text = new TextEncoder();
const hex = (bytes: ArrayBuffer) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
const made = (raw: BufferSource) => crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const mac = (key: CryptoKey, ...lines: string[]) => crypto.subtle.sign("HMAC", key, text.encode(lines.join("\n")));
const sha256 = async (s: string) => hex(await crypto.subtle.digest("SHA-256", text.encode(s)));
const idOf = async (key: CryptoKey) => hex(await mac(key, "ava id")).slice(0, 32);

// A worker that took this tab over would read what is answered, and answer itself.
function alone() {
  if (navigator.serviceWorker?.controller) throw new Stranger("Another program has left a worker at this address: close this tab and run `ava dashboard`.");
}

// A request to the database of the one key that is kept.
function kept<T>(mode: IDBTransactionMode, act: (keys: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    const opening = indexedDB.open("ava", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => failed(opening.error);
    opening.onsuccess = () => {
      const asking = act(opening.result.transaction("keys", mode).objectStore("keys"));
      asking.onsuccess = () => done(asking.result);
      asking.onerror = () => failed(asking.error);
      asking.transaction!.oncomplete = () => opening.result.close();
    };
  });
}

export class Signer {
  private tab: CryptoKey | null = null;
  private id = "";
  private number = 0;
  private challenge = "";
  private trusted = false; // the one at this port is ours, since the stream is open
  private asking: Promise<unknown> | null = null;

  // Signs in by a code, else by what an earlier tab left. False: there is neither.
  async open(code?: string): Promise<boolean> {
    if (!globalThis.crypto?.subtle) throw new Refused("This browser signs only for http://127.0.0.1 and http://localhost: open the page by one of them (ssh -L leads there).");
    const old = await kept<CryptoKey | undefined>("readonly", (k) => k.get("browser")).catch(() => undefined);
    let browser = old;
    if (code) {
      try {
        browser = await this.hello(await made(Uint8Array.from(code.match(/../g)!, (b) => parseInt(b, 16))));
        await kept("readwrite", (k) => k.put(browser, "browser")).catch(() => {});
      } catch (e) {
        if (!old) throw e;
      }
    }
    if (!browser) return false;
    try {
      this.tab = await this.hello(browser);
    } catch (e) {
      if (e instanceof Refused) await this.forget();
      throw e;
    }
    this.id = await idOf(this.tab);
    return true;
  }

  async sign(method: string, path: string, body: string) {
    const tab = this.tab, url = new URL(path, location.href);
    if (!tab) throw new Refused("This tab is signed out.");
    if (!this.trusted) await (this.asking ??= this.hello(tab).finally(() => (this.asking = null)));
    const n = String(++this.number);
    const made = await mac(tab, "ava request", location.host, this.challenge, n, method, await sha256(url.pathname + url.search), await sha256(body));
    alone(); // last of all, behind every wait: a worker may come while the stream is open, too
    return { url, authorization: `Ava id=${this.id}, n=${n}, mac=${hex(made)}` };
  }

  async trust() {
    if (this.tab) await this.hello(this.tab);
    this.trusted = true;
  }
  doubt() {
    this.trusted = false;
  }
  async forget() {
    this.tab = null;
    await kept("readwrite", (k) => k.delete("browser")).catch(() => {});
  }

  // The key that follows on `key`, from a daemon that knows it.
  private async hello(key: CryptoKey): Promise<CryptoKey> {
    alone();
    const host = location.host, nonce = hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
    const body = JSON.stringify({ host, id: await idOf(key), nonce, mac: hex(await mac(key, "ava hello", host, nonce)) });
    const answer = await fetch("/api/v1/login", { method: "POST", headers: { "Content-Type": "application/json" }, body, cache: "no-store", credentials: "omit" });
    const said = await answer.json().catch(() => null);
    if (answer.status === 403) throw new Refused(String(said?.error?.message ?? "This tab is signed out: run `ava dashboard` again."));
    if (!answer.ok) throw new Error(String(answer.status));
    const challenge = String(said?.challenge);
    if (!/^[0-9a-f]{32}$/.test(challenge) || said.proof !== hex(await mac(key, "ava daemon", host, nonce, challenge)))
      throw new Stranger("Another program answers at this address, and not the daemon: run `ava dashboard` again.");
    this.challenge = challenge;
    return made(await mac(key, "ava key", host, nonce, challenge));
  }
}
