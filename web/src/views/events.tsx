// A list of events of any length: only the rows in sight are elements.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { AvaEvent } from "../api";
import { isError, lineOf } from "../trace";
import { Modal } from "../ui";
import { clock, cut } from "../words";
import { address } from "../router";

const ROW = 26;

export function EventModal({ event: e, close }: { event: AvaEvent; close: () => void }) {
  return (
    <Modal title={`${e.eventType}, ${clock(e.timestamp)}`} close={close} wide>
      <p class="soft">lsn {e.lsn}, line {e.seq} of its file{e.agentId.startsWith("S-") ? <>, of <a href={address("run", e.agentId)} onClick={close}>{e.agentId}</a></> : ""}</p>
      <pre class="plain" tabIndex={0}>{JSON.stringify(e, null, 2)}</pre>
    </Modal>
  );
}

export function EventList({ events, named }: { events: AvaEvent[]; named?: boolean }) {
  const top = useSignal(0), height = useSignal(600), open = useSignal<AvaEvent | null>(null), at = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const el = at.current!;
    const see = new ResizeObserver(() => (height.value = el.clientHeight));
    see.observe(el);
    return () => see.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top.value / ROW) - 10), last = Math.min(events.length, Math.ceil((top.value + height.value) / ROW) + 10);
  return (
    <>
      <div class="events" ref={at} tabIndex={0} role="region" aria-label={`${events.length} events`} onScroll={(e) => (top.value = e.currentTarget.scrollTop)}>
        <div style={{ height: `${events.length * ROW}px`, position: "relative" }}>
          {events.slice(first, last).map((e, i) => (
            <button key={e.lsn} class={isError(e) ? "event bad" : "event"} style={{ transform: `translateY(${(first + i) * ROW}px)` }} onClick={() => (open.value = e)}>
              <span class="mono">{clock(e.timestamp)}</span>
              {named ? <span class="mono agent-id">{e.agentId}</span> : null}
              <strong>{e.eventType}</strong>
              <span class="ellipsis">{cut(lineOf(e), 300)}</span>
            </button>
          ))}
        </div>
      </div>
      {open.value ? <EventModal event={open.value} close={() => (open.value = null)} /> : null}
    </>
  );
}
