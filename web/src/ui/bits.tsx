// Small parts that views share.

import { Component, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Happening, NodeRow, Resource } from '../api.ts'
import { age, ago, clock, UNKNOWN } from '../format.ts'
import { state } from '../nodes.ts'
import type { Failing } from '../poll.ts'
import { programNow } from '../store.ts'

const ICONS = {
  up: 'M8 2.5 14.5 13.5H1.5Z',
  no: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13ZM4 7h8v2H4Z',
  yes: 'm2 8.5 1.6-1.6 2.9 2.9 6-6L14 5.4 6.5 13Z',
  ask: 'M5 6a3 3 0 1 1 4.4 2.6c-.5.3-.6.6-.6 1.2H7c0-1.500.5-2.100 1.400-2.700A1.200 1.200 0 1 0 6.800 6ZM7 11h1.900v1.900H7Z',
  cold: 'M7 1h2v9.500l3-3 1.300 1.400L8 14.300 2.700 8.900 4 7.500l3 3Z',
  off: 'M7 1h2v7H7ZM4.600 3.600l1.200 1.600a4 4 0 1 0 4.400 0l1.200-1.600a6 6 0 1 1-6.800 0Z',
  slow: 'M3 2h3.500v12H3ZM9.500 2H13v12H9.500Z',
  gone: 'M2 7h7.500L6.700 4.200 8 2.800 13.200 8 8 13.200l-1.300-1.400L9.500 9H2Z',
  back: 'M14 7H6.500l2.800-2.800L8 2.800 2.800 8 8 13.200l1.300-1.400L6.500 9H14Z',
  dot: 'M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6Z',
  star: 'm8 1.500 2 4.400 4.700.5-3.500 3.200 1 4.700L8 11.900l-4.200 2.400 1-4.700L1.300 6.400 6 5.900Z',
} as const

export type Glyph = keyof typeof ICONS

export const Icon = ({ of }: { of: Glyph }) => (
  <svg class="icon" viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
    <path d={ICONS[of]} fill="currentColor" fill-rule="evenodd" />
  </svg>
)

export const Badge = ({ of, tone, children }: { of: Glyph; tone: 'bad' | 'warn' | 'calm' | 'good'; children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>
    <Icon of={of} />
    <span>{children}</span>
  </span>
)

/** What there is to say about a node in a word or two; nothing where all is well. */
export function NodeBadge({ node, resource }: { node: NodeRow; resource: Resource }) {
  switch (state(node, resource)) {
    case 'away':
      return node.ready ? <Badge of="no" tone="calm">cordoned</Badge> : <Badge of="off" tone="bad">not ready</Badge>
    case 'over':
      return <Badge of="up" tone="bad">over the line</Badge>
    case 'closed':
      if (node.closed === 'cooling') return <Badge of="cold" tone="calm">cooling</Badge>
      if (node.closed === 'unknown') return <Badge of="ask" tone="warn">closed: no data</Badge>
      return <Badge of="no" tone="bad">closed: over a limit</Badge>
    case 'unknown':
      return <Badge of="ask" tone="warn">not measured</Badge>
    case 'ok':
      return null
  }
}

/** Why load keeps pods off a node, in a sentence. */
export function closedBecause(node: NodeRow): string | null {
  switch (node.closed) {
    case 'threshold':
      return 'It takes no more pods: one of its load metrics is over its limit.'
    case 'unknown':
      return 'It takes no more pods: too little is known about its load, and unknown is not taken for idle.'
    case 'cooling':
      return `It takes no more pods${node.coolingUntil === null ? '' : ` until ${clock(node.coolingUntil)}`}: it was over its line and gave pods up, so it is left to cool.`
    case null:
      return null
  }
}

/** Turns moments into words, and says exactly when to whoever points at it. */
export const Time = ({ at }: { at: string }) => (
  <time dateTime={at} title={at}>
    {clock(at)}
  </time>
)

export function Ago({ at }: { at: string }) {
  const seconds = (programNow() - Date.parse(at)) / 1000
  return (
    <time dateTime={at} title={`${clock(at)} · ${at}`}>
      {Number.isNaN(seconds) ? UNKNOWN : ago(seconds)}
    </time>
  )
}

export const Age = ({ seconds }: { seconds: number | null }) => <>{seconds === null ? 'never' : age(seconds)}</>

export const Tile = ({ name, children, note, bad }: { name: string; children: ComponentChildren; note?: ComponentChildren; bad?: boolean }) => (
  <div class={bad === true ? 'tile bad' : 'tile'}>
    <dt>{name}</dt>
    <dd>
      <strong>{children}</strong>
      {note !== undefined && <small>{note}</small>}
    </dd>
  </div>
)

/** A heading that takes the focus when the view opens, so that readers of the screen begin there. */
export const Title = ({ children }: { children: ComponentChildren }) => (
  <h1 tabIndex={-1} id="title">
    {children}
  </h1>
)

export const Waiting = ({ what }: { what: string }) => (
  <p class="waiting" role="status">
    Asking for {what} …
  </p>
)

/** What is said where one answer is missing and the rest of the page is well. */
export const Missing = ({ what, failing }: { what: string; failing: Failing }) => (
  <p class="note warn" role="status">
    <Icon of="ask" /> {what} not known since {clock(failing.since)}: {failing.message}
  </p>
)

export const Warnings = ({ of }: { of: readonly string[] | null | undefined }) =>
  of === null || of === undefined || of.length === 0 ? null : (
    <ul class="warnings">
      {of.map((text) => (
        <li key={text}>
          <Icon of="up" /> {text}
        </li>
      ))}
    </ul>
  )

export function useMedia(query: string): boolean {
  const [matches, set] = useState(() => matchMedia(query).matches)
  useEffect(() => {
    const media = matchMedia(query)
    const changed = () => set(media.matches)
    changed()
    media.addEventListener('change', changed)
    return () => media.removeEventListener('change', changed)
  }, [query])
  return matches
}

export const NARROW = '(max-width: 719px)'

/** Is somebody pointing into an element, or is the focus in it? Then nothing there should jump. */
export function useHold() {
  const [pointed, setPointed] = useState(false)
  const [focused, setFocused] = useState(false)
  return {
    held: pointed || focused,
    hold: {
      onPointerEnter: (event: PointerEvent) => event.pointerType === 'mouse' && setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: () => setFocused(false),
    },
  }
}

/** The value as it is, or as it was when somebody began to point at it. */
export function useHeld<T>(value: T, held: boolean, reset: string): T {
  const kept = useRef({ value, reset })
  if (!held || kept.current.reset !== reset) kept.current = { value, reset }
  return kept.current.value
}

/** A part that breaks says so and leaves the others alone. */
export class Guard extends Component<{ children: ComponentChildren }, { broken: string | null }> {
  override state = { broken: null as string | null }
  static override getDerivedStateFromError(error: unknown) {
    return { broken: error instanceof Error ? error.message : String(error) }
  }
  override render() {
    if (this.state.broken === null) return this.props.children
    return (
      <div class="note bad" role="alert">
        <p>This view could not be drawn: {this.state.broken}</p>
        <button type="button" onClick={() => this.setState({ broken: null })}>
          Try again
        </button>
      </div>
    )
  }
}

export const Filter = ({ label, value, set }: { label: string; value: string; set: (value: string) => void }) => (
  <label class="filter">
    <span class="hidden">{label}</span>
    <input type="search" placeholder={label} value={value} onInput={(event) => set(event.currentTarget.value)} spellcheck={false} autocomplete="off" />
  </label>
)

export function Choice<T extends string>({ label, value, of, set }: { label: string; value: T; of: readonly (readonly [T, string])[]; set: (value: T) => void }) {
  const name = `choice-${label.replace(/\W/g, '')}`
  return (
    <fieldset class="choice">
      <legend class="hidden">{label}</legend>
      {of.map(([key, text]) => (
        <label key={key}>
          <input type="radio" name={name} value={key} checked={value === key} onChange={() => set(key)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  )
}

/** Who said it, when many said the same. */
export const Times = ({ item }: { item: Happening }) => (item.count > 1 ? <span class="count"> ×{item.count}</span> : null)
