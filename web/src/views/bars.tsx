// Stacked bars over time: a part of the span a bar, each a link. One of them is in the order of Tab, arrows
// go on from there; what a bar stands for is said in a line below, and for all of them in a table.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

export interface Series {
  name: string;
  title?: string;
  values: number[];
  only?: [filter: string, value: string]; // the filter that its part of a bar leads to
}
export interface Bar {
  name: string; // the time of the bar
  to: (only?: [filter: string, value: string]) => string; // the address that it leads to
}

const HIGH = 100; // units of the drawing, which is stretched to its place
export function Bars({ label, series, bars, show, line }: { label: string; series: Series[]; bars: Bar[]; show: (v: number) => string; line?: { name: string; value: number } }) {
  const at = useSignal(-1), part = useSignal<Series["only"]>(undefined), host = useRef<SVGSVGElement>(null);
  const sum = (i: number) => series.reduce((n, s) => n + (s.values[i] ?? 0), 0), sums = bars.map((_, i) => sum(i)), highest = Math.max(...sums, 0);
  const lined = line && line.value <= 3 * highest, top = Math.max(highest, lined ? line.value : 0) || 1, y = (v: number) => HIGH - (v / top) * HIGH;
  const said = (i: number) => `${bars[i]!.name}: ${show(sums[i]!)}${series.length > 1 ? series.filter((s) => s.values[i]).map((s) => `, ${s.name} ${show(s.values[i]!)}`).join("") : ""}`;
  const stop = Math.min(at.value < 0 ? bars.length - 1 : at.value, bars.length - 1); // the one that Tab reaches
  const key = (e: KeyboardEvent) => {
    part.value = undefined;
    const to = { ArrowLeft: stop - 1, ArrowRight: stop + 1, Home: 0, End: bars.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    host.current!.querySelectorAll<SVGAElement>("a")[Math.max(0, Math.min(bars.length - 1, to))]!.focus();
  };
  const draw = (i: number) => {
    let from = 0;
    return series.map((s, n) => {
      const v = s.values[i] ?? 0, low = y(from);
      from += v;
      return v ? <rect key={n} class={`c${n}`} x={i + 0.1} width={0.8} y={y(from)} height={low - y(from)} onMouseEnter={() => (part.value = s.only)} /> : null;
    });
  };
  return (
    <figure class="bars">
      <ul class="legend">
        {series.map((s, n) => <li key={n} title={s.title}><i class={`c${n}`} /> {s.name} <b class="number">{show(s.values.reduce((a, v) => a + v, 0))}</b></li>)}
        {lined ? <li><i class="limit" /> {line.name}</li> : null}
      </ul>
      <div class="plot">
        <small class="number scale">{show(top)}</small>
        <svg ref={host} viewBox={`0 0 ${bars.length} ${HIGH}`} preserveAspectRatio="none" role="group" aria-label={`${label}: arrow keys go from bar to bar`} onKeyDown={key} onMouseLeave={() => (at.value = -1)}>
          {bars.map((b, i) => (
            <a key={i} href={b.to(i === at.value ? part.value : undefined)} aria-label={said(i)} tabindex={i === stop ? 0 : -1} class={i === at.value ? "at" : ""} onFocus={() => (at.value = i)} onMouseEnter={() => (at.value = i)}>
              <rect class="ground" x={i} width={1} y={0} height={HIGH} onMouseEnter={() => (part.value = undefined)} />{draw(i)}
            </a>
          ))}
          {lined ? <line class="limit" x1={0} x2={bars.length} y1={y(line.value)} y2={y(line.value)} /> : null}
        </svg>
        <div class="ends">{[0, Math.floor(bars.length / 2), bars.length - 1].map((i) => <small key={i}>{bars[i]?.name}</small>)}</div>
      </div>
      <figcaption class="soft">{at.value >= 0 && bars[at.value] ? said(at.value) : "Point at a bar to see its figures; a click shows the runs of that time."}</figcaption>
      <details>
        <summary>As a table</summary>
        <div class="scroll">
          <table>
            <caption class="visually-hidden">{label}</caption>
            <thead><tr><th scope="col">From</th>{series.map((s, n) => <th key={n} scope="col" class="number">{s.name}</th>)}<th scope="col" class="number">Total</th></tr></thead>
            <tbody>{bars.map((b, i) => (sums[i] ? <tr key={i}><th scope="row"><a href={b.to()}>{b.name}</a></th>{series.map((s, n) => <td key={n} class="number">{s.values[i] ? show(s.values[i]!) : ""}</td>)}<td class="number">{show(sums[i]!)}</td></tr> : null))}</tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
