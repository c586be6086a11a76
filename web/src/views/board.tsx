export function Board() {
  return <p>board</p>;
}
