import { signal } from "@preact/signals";
export const newTask = signal(false);
export function NewTask() {
  return null;
}
