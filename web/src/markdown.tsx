// Markdown of models and tools as elements, never as HTML: what is HTML in it is shown as text, links
// go to http, https and mailto only and show where they lead, pictures are named and not loaded.
import { marked, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";

const MAX = 64 * 1024; // more is shown as it is: nobody reads it, and reading it takes long

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
      {children}
      <small class="host"> ({u.host || u.pathname})</small>
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
function levels(tokens: Token[]) {
  let top = 0, last = 1;
  marked.walkTokens(tokens, (t) => {
    if (t.type !== "heading") return;
    top = Math.min(top || t.depth, t.depth);
    t.depth = last = Math.min(6, last + 1, t.depth - top + 2);
  });
}

export function Markdown({ text }: { text: string }) {
  if (text.length > MAX) return <pre class="plain">{text}</pre>;
  let tokens: Token[];
  try {
    tokens = marked.lexer(text);
    levels(tokens);
  } catch {
    return <pre class="plain">{text}</pre>;
  }
  return <div class="markdown">{tokens.map((t, i) => one(t, i))}</div>;
}
