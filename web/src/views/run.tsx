export function RunView({ id }: { id: string }) {
  return <p>run {id}</p>;
}
