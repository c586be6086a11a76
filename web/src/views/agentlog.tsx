export function AgentLog() {
  return <p>agentlog</p>;
}
