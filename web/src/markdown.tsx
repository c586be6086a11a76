// Text of models and tools, drawn as Markdown (reader.tsx). The reader is a fifth of all the page's code: it
// comes behind the rest.
import { signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Part, reading } from "./reader";

const MAX = 64 * 1024; // more is shown as it is: nobody reads it, and reading it takes long
const reader = signal<typeof reading | null>(null);
import("./reader").then((m) => (reader.value = m.reading), () => {});

// Text is read once: what is around it is drawn again much oftener.
export function Markdown({ text }: { text: string }) {
  const by = reader.value, kept = useRef<Part[]>([]);
  return useMemo(() => {
    if (!by || text.length > MAX) return <pre class="plain">{text}</pre>;
    kept.current = by(text, kept.current);
    return <div class="markdown">{kept.current.map((p) => p.shown)}</div>;
  }, [text, by]);
}
