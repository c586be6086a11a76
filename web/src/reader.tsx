// Markdown of models and tools as elements, never as HTML: what is HTML in it is shown as text, links
// go to http, https and mailto only and show where they lead, pictures are named and not loaded.
import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";

const PART = 2048, MAX_PART = 8192; // what is longer is shown as it is
const LINKS = 64, MARKS = 256; // in a paragraph: reading more of them takes long, too

function linked(href: string): URL | null {
  try {
    const u = new URL(href);
    return ["http:", "https:", "mailto:"].includes(u.protocol) ? u : null;
  } catch {
    return null;
  }
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  const u = linked(href);
  if (!u) return <span>{children}</span>;
  return (
    <a href={u.href} target="_blank" rel="noopener noreferrer">
      <bdi>{children}</bdi>
      <small class="host"> (<bdi dir="ltr">{u.host || u.pathname}</bdi>)</small>
    </a>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map((t, i) => one(t, i));
}

// The text of a token without the entities that marked wrote for HTML.
function plain(s: string): string {
  return s.replace(/&(amp|lt|gt|quot|#39);/g, (_, e) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[e as string]!);
}

function one(t: Token, key: number): ComponentChildren {
  switch (t.type) {
    case "space":
      return null;
    case "hr":
      return <hr key={key} />;
    case "heading": {
      const H = `h${(t as Tokens.Heading).depth}` as "h2";
      return <H key={key}>{inline(t.tokens)}</H>;
    }
    case "paragraph":
      return <p key={key}>{inline(t.tokens)}</p>;
    case "blockquote":
      return <blockquote key={key}>{inline(t.tokens)}</blockquote>;
    case "list": {
      const l = t as Tokens.List;
      const items = l.items.map((item, i) => (
        <li key={i}>
          {item.task ? <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "done" : "open"} /> : null}
          {inline(item.tokens)}
        </li>
      ));
      return l.ordered ? <ol key={key} start={Number(l.start) || 1}>{items}</ol> : <ul key={key}>{items}</ul>;
    }
    case "code":
      return <pre key={key}><code>{(t as Tokens.Code).text}</code></pre>;
    case "table": {
      const table = t as Tokens.Table;
      return (
        <div class="scroll" key={key}>
          <table>
            <thead><tr>{table.header.map((c, i) => <th key={i} scope="col">{inline(c.tokens)}</th>)}</tr></thead>
            <tbody>{table.rows.map((row, i) => <tr key={i}>{row.map((c, j) => <td key={j}>{inline(c.tokens)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    }
    case "strong":
      return <strong key={key}>{inline(t.tokens)}</strong>;
    case "em":
      return <em key={key}>{inline(t.tokens)}</em>;
    case "del":
      return <del key={key}>{inline(t.tokens)}</del>;
    case "codespan":
      return <code key={key}>{plain((t as Tokens.Codespan).text)}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return <Link key={key} href={(t as Tokens.Link).href}>{inline(t.tokens)}</Link>;
    case "image":
      return <span key={key} class="picture">[picture: {plain((t as Tokens.Image).text) || "unnamed"}]</span>;
    case "text":
      return t.tokens ? inline(t.tokens) : plain((t as Tokens.Text).text);
    default: // html, def and what comes later: as it stands
      return t.raw;
  }
}

// The headings of a text below those of the page: the first is an h2, and none is more than one
// level below the one before it, so that who goes from heading to heading misses none.
interface Head {
  top: number;
  last: number;
}
const NONE: Head = { top: 0, last: 1 };
function levels(tokens: Token[], head: Head) {
  const walk = (list: Token[] = []) => {
    for (const t of list) {
      if (t.type === "heading") {
        head.top = Math.min(head.top || t.depth, t.depth);
        t.depth = head.last = Math.min(6, head.last + 1, t.depth - head.top + 2);
      }
      walk(t.type === "list" ? (t as Tokens.List).items : "tokens" in t ? t.tokens : []);
    }
  };
  walk(tokens);
}

// A text in parts that can be read one by one: cut outside of code, where a block begins.
function parts(text: string): string[] {
  const all: string[] = [];
  let part = "", fence = "", blank = false;
  for (const line of text.split("\n")) {
    const mark = /^\s*(`{3,}|~{3,})[^`]*$/.exec(line)?.[1] ?? "";
    if (part.length > PART && !fence && (blank ? /^\S/ : /^([-*+]|\d+[.)])\s/).test(line)) {
      all.push(part);
      part = "";
    }
    if (!fence) fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = "";
    part += `${line}\n`;
    blank = !line.trim();
  }
  return [...all, part];
}

export interface Part {
  text: string;
  before: Head; // the headings above it
  after: Head;
  shown: ComponentChildren;
}
function read(text: string, before: Head): Part {
  const after = { ...before }, lexer = new Lexer();
  try {
    if (text.length > MAX_PART) throw new Error();
    lexer.blockTokens(text, lexer.tokens);
    for (const { src, tokens } of lexer["inlineQueue"]) {
      if (src.split("[").length > LINKS || src.split(/[*_~`<]/).length > MARKS) tokens.push({ type: "as it is", raw: src });
      else lexer.inlineTokens(src, tokens);
    }
    levels(lexer.tokens, after);
    return { text, before, after, shown: lexer.tokens.map(one) };
  } catch {
    return { text, before, after, shown: <pre class="plain">{text}</pre> };
  }
}

// Parts that stand as they were are not read again: of a text that grows the last one is.
export function reading(text: string, kept: Part[]): Part[] {
  let head = NONE;
  return parts(text.replace(/\r\n?/g, "\n")).map((p, i) => {
    const was = kept[i], part = was?.text === p && was.before === head ? was : read(p, head);
    head = part.after;
    return part;
  });
}
