export function Logs() {
  return <p>logs</p>;
}
