// Lists of any length, above all of events: only the rows in sight are elements.
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { AvaEvent } from "../api";
import { isError, lineOf } from "../trace";
import { Modal } from "../ui";
import { clock, cut } from "../words";
import { address } from "../router";
import "./events.css";

const ROW = 26;

export function EventModal({ event: e, close }: { event: AvaEvent; close: () => void }) {
  return (
    <Modal title={`${e.eventType}, ${clock(e.timestamp)}`} close={close} wide>
      <p class="soft">lsn {e.lsn}, line {e.seq} of its file{e.agentId.startsWith("S-") ? <>, of <a href={address("run", e.agentId)} onClick={close}>{e.agentId}</a></> : ""}</p>
      <pre class="plain" tabIndex={0}>{JSON.stringify(e, null, 2)}</pre>
    </Modal>
  );
}

interface RowsOf extends HTMLAttributes<HTMLDivElement> {
  n: number;
  row: number; // height of each
  label: string;
  full?: boolean; // full height whatever `n`
  fill?: boolean; // height of its place
  follow?: Signal<boolean>; // sticks to the last row, until somebody scrolls up
  show?: number; // the row that is in sight, when it is another one than before
  of: (i: number, style: { transform: string }) => ComponentChildren; // makes the rows in sight; `style` has the place of each
}
export function Rows({ n, row, label, full, fill, follow, show = -1, of, ...more }: RowsOf) {
  const top = useSignal(0), height = useSignal(600), at = useRef<HTMLDivElement>(null), seen = useRef(n);
  useLayoutEffect(() => {
    const el = at.current!;
    const see = new ResizeObserver(() => (height.value = el.clientHeight));
    see.observe(el);
    return () => see.disconnect();
  }, []);
  const sticks = !!follow?.value;
  if (sticks || !follow) seen.current = n;
  useLayoutEffect(() => {
    if (sticks) at.current!.scrollTop = at.current!.scrollHeight;
  }, [n, sticks, height.value]);
  useLayoutEffect(() => {
    const el = at.current!, y = show * row;
    if (show >= 0 && (y < el.scrollTop || y + row > el.scrollTop + el.clientHeight)) el.scrollTop = y - el.clientHeight / 3;
  }, [show]);
  const scrolled = (el: HTMLDivElement) => {
    const up = el.scrollTop < top.peek();
    top.value = el.scrollTop;
    if (!follow) return;
    if (el.scrollTop + el.clientHeight >= el.scrollHeight - row) follow.value = true;
    else if (up) follow.value = false;
  };
  const first = Math.max(0, Math.floor(top.value / row) - 10), last = Math.min(n, Math.ceil((top.value + height.value) / row) + 10);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, i) => of(first + i, { transform: `translateY(${(first + i) * row}px)` }));
  return (
    <div class="rows">
      <div class={fill ? "events fill" : full ? "events" : "events as-long"} style={full || fill ? {} : { height: `min(64vh, ${n * row + 2}px)` }} ref={at} tabIndex={0} role="region" aria-label={label} {...more} onScroll={(e) => scrolled(e.currentTarget)}>
        <div role="presentation" style={{ height: `${n * row}px`, position: "relative" }}>{shown}</div>
      </div>
      {follow && n > seen.current ? <button class="pill" onClick={() => (follow.value = true)}>↓ New below</button> : null}
    </div>
  );
}

// `n` is the count of events in a list that grows in its place.
export function EventList({ events, n = events.length, named, fill, follow }: { events: AvaEvent[]; n?: number; named?: boolean; fill?: boolean; follow?: Signal<boolean> }) {
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
      <Rows full fill={fill} follow={follow} n={n} row={ROW} label={`${n} events`} of={line} />
      {open.value ? <EventModal event={open.value} close={() => (open.value = null)} /> : null}
    </>
  );
}
