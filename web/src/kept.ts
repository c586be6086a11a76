// What this browser remembers: how things are shown, nothing of what is shown.
export function kept(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}
export function keep(name: string, value: string) {
  try {
    localStorage.setItem(name, value);
  } catch {}
}
