export function SessionView({ id }: { id: string }) {
  return <p>session {id}</p>;
}
