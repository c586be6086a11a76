// A chart by uPlot, redrawn when its data, its width or the theme changes; the figures stand beside it
// as a table for those who do not see it.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export const colours = ["--blue", "--green", "--violet", "--yellow", "--red", "--gray"];
const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export interface Line {
  name: string;
  values: (number | null)[];
}

export function Chart({ label, at, lines, height = 180, show }: { label: string; at: number[]; lines: Line[]; height?: number; show: (v: number) => string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const el = host.current!;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
      plot = new uPlot(
        {
          width: el.clientWidth || 300, height, cursor: { y: false }, legend: { live: true },
          axes: [axis, { ...axis, values: (_, v) => v.map(show), size: 64 }],
          series: [{}, ...lines.map((l, i) => ({
            label: l.name, stroke: colour(colours[i % colours.length]!), width: 2,
            points: { show: at.length < 20 }, value: (_: uPlot, v: number | null) => (v == null ? "" : show(v)),
          }))],
        },
        [at, ...lines.map((l) => l.values)] as uPlot.AlignedData, el,
      );
    };
    draw();
    const size = new ResizeObserver(() => plot?.setSize({ width: el.clientWidth || 300, height }));
    size.observe(el);
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      size.disconnect();
      theme.disconnect();
      dark.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [at, lines]);
  return <div class="chart" ref={host} role="img" aria-label={label} />;
}
