// Lists of any length, above all of events: only the rows in sight are elements.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
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

// `n` rows of one height, of which `of` makes those in sight: where each is is its style.
export function Rows({ n, row, label, full, of }: { n: number; row: number; label: string; full?: boolean; of: (i: number, style: { transform: string }) => ComponentChildren }) {
  const top = useSignal(0), height = useSignal(600), at = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const el = at.current!;
    const see = new ResizeObserver(() => (height.value = el.clientHeight));
    see.observe(el);
    return () => see.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top.value / row) - 10), last = Math.min(n, Math.ceil((top.value + height.value) / row) + 10);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, i) => of(first + i, { transform: `translateY(${(first + i) * row}px)` }));
  return (
    <div class={full ? "events" : "events as-long"} style={full ? {} : { height: `min(64vh, ${n * row + 2}px)` }} ref={at} tabIndex={0} role="region" aria-label={label} onScroll={(e) => (top.value = e.currentTarget.scrollTop)}>
      <div style={{ height: `${n * row}px`, position: "relative" }}>{shown}</div>
    </div>
  );
}

export function EventList({ events, named }: { events: AvaEvent[]; named?: boolean }) {
  const open = useSignal<AvaEvent | null>(null);
  const line = (i: number, style: { transform: string }) => {
    const e = events[i]!;
    return (
      <button key={e.lsn} class={isError(e) ? "event bad" : "event"} style={style} onClick={() => (open.value = e)}>
        <span class="mono">{clock(e.timestamp)}</span>
        {named ? <span class="mono agent-id">{e.agentId}</span> : null}
        <strong>{e.eventType}</strong>
        <span class="ellipsis">{cut(lineOf(e), 300)}</span>
      </button>
    );
  };
  return (
    <>
      <Rows full n={events.length} row={ROW} label={`${events.length} events`} of={line} />
      {open.value ? <EventModal event={open.value} close={() => (open.value = null)} /> : null}
    </>
  );
}
