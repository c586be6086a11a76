// Pictures of the page: lines on a field of 16 by 16, in the colour of the text around them.
const paths = {
  inbox: "M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 2h3l1-2H14",
  runs: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  chat: "M2.5 3h11v8h-6L4 13.5V11H2.5z",
  claude: "M8 2v12M2.8 5l10.4 6M13.2 5 2.8 11",
  orders: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2.2 1.4",
  costs: "M3 13V8M7 13V3M11 13V6M2 13.5h12",
  logs: "M4 2.5h8v11H4zM6 6h4M6 8.5h4M6 11h2.5",
  memory: "M8 13.5C3 11 2 8.5 2 6.2A3 3 0 0 1 8 5a3 3 0 0 1 6 1.2c0 2.3-1 4.8-6 7.3z",
  settings: "M2 5h6M11 5h3M2 11h3M8 11h6M9.5 3.5v3M6.5 9.5v3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  plus: "M8 3v10M3 8h10",
  search: "M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4zM10 10l3.5 3.5",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  help: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.1v.4M8 11.9h.01",
  open: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2",
  // states of a run
  queued: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
  running: "M8 2.5A5.5 5.5 0 1 0 13.5 8M6.5 5.8v4.4L10 8z",
  waiting: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.6M8 10.9h.01",
  parked: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.5 6v4M9.5 6v4",
  done: "M3 8.5 6.5 12 13 4.5",
  failed: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6 6l4 4M10 6l-4 4",
  cancelled: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.2 11.8l7.6-7.6",
};
export type IconName = keyof typeof paths;
export const Icon = ({ name }: { name: IconName }) => <svg class={`icon i-${name}`} viewBox="0 0 16 16" aria-hidden="true"><path d={paths[name]} /></svg>;
