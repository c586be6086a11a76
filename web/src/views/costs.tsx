export function Costs() {
  return <p>costs</p>;
}
