// Light or dark: as the system has it, or as somebody chose.

export const THEMES = ['auto', 'light', 'dark'] as const
const KEY = 'loadline-theme'

export function chosen(): string {
  try {
    return THEMES.find((name) => name === localStorage.getItem(KEY)) ?? 'auto'
  } catch {
    return 'auto'
  }
}

/** At once, so that nothing is drawn in other colours first. */
export function wear(theme: string): void {
  if (theme === 'auto') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export function choose(theme: string): void {
  wear(theme)
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // A browser that keeps nothing still shows it.
  }
}
