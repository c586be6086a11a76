export function ClaudeView({ id }: { id: string }) {
  return <p>claude {id}</p>;
}
