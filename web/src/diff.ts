// Differences between two lists of texts, lines of a file or words of a line: what stays (""), goes ("del"), comes ("add").
export type Step = [kind: "" | "del" | "add", text: string];

const MOST = 2e6; // pairs that are compared; of longer lists the middle has all gone and all come

export function diffOf(a: string[], b: string[]): Step[] {
  let head = 0, tail = 0, i = 0, j = 0;
  const least = Math.min(a.length, b.length);
  while (head < least && a[head] === b[head]) head++;
  while (tail < least - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail), w = y.length + 1, steps: Step[] = [];
  if (x.length * y.length <= MOST) {
    const same = new Uint32Array((x.length + 1) * w); // the most that can stay from (i, j) on
    for (i = x.length - 1; i >= 0; i--)
      for (j = y.length - 1; j >= 0; j--) same[i * w + j] = x[i] === y[j] ? same[(i + 1) * w + j + 1]! + 1 : Math.max(same[(i + 1) * w + j]!, same[i * w + j + 1]!);
    for (i = j = 0; i < x.length && j < y.length; )
      if (x[i] === y[j]) steps.push(["", x[i++]!]) && j++;
      else if (same[(i + 1) * w + j]! >= same[i * w + j + 1]!) steps.push(["del", x[i++]!]);
      else steps.push(["add", y[j++]!]);
  }
  const all = (kind: Step[0], texts: string[]) => texts.map((t): Step => [kind, t]);
  return [...all("", a.slice(0, head)), ...steps, ...all("del", x.slice(i)), ...all("add", y.slice(j)), ...all("", a.slice(a.length - tail))];
}
export const wordsOf = (text: string) => text.match(/\w+|\s+|[^\w\s]/g) ?? [];
// The steps of one side.
export const sideOf = (steps: Step[], kind: "del" | "add") => steps.filter(([k]) => !k || k === kind);
