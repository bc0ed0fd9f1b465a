// What was done, one line each.

import type { Happening } from '../api.ts'
import { act, type Act } from '../happenings.ts'
import { toNode, toPod } from '../route.ts'
import { Ago, Badge, Times, type Glyph } from './bits.tsx'

export const ACTS: Record<Act, { glyph: Glyph; tone: 'bad' | 'warn' | 'calm' | 'good'; word: string }> = {
  slowed: { glyph: 'slow', tone: 'warn', word: 'slowed down' },
  gone: { glyph: 'gone', tone: 'bad', word: 'sent away' },
  moved: { glyph: 'gone', tone: 'calm', word: 'moved' },
  back: { glyph: 'back', tone: 'good', word: 'given back' },
  stays: { glyph: 'no', tone: 'calm', word: 'stays' },
  line: { glyph: 'up', tone: 'bad', word: 'line passed' },
  taint: { glyph: 'no', tone: 'calm', word: 'taint' },
  other: { glyph: 'dot', tone: 'calm', word: 'said' },
}

export function ActBadge({ item }: { item: Happening }) {
  const kind = act(item)
  if (item.reason === 'Scheduled') return <Badge of="yes" tone="good">placed</Badge>
  if (item.reason === 'FailedScheduling') return <Badge of="no" tone="bad">no node</Badge>
  if (kind === 'line' && item.type === 'Normal') return <Badge of="back" tone="good">below again</Badge>
  const { glyph, tone, word } = ACTS[kind]
  return <Badge of={glyph} tone={tone}>{kind === 'other' ? item.reason : word}</Badge>
}

export const About = ({ item }: { item: Happening }) =>
  item.kind === 'Pod' && item.about.includes('/') ? (
    <a href={toPod(item.about)}>{item.about}</a>
  ) : item.kind === 'Node' ? (
    <a href={toNode(item.about)}>{item.about}</a>
  ) : (
    <>{item.about}</>
  )

/** The newest first; `without` leaves out the name of what the page is about anyway. */
export function Acts({ items, without }: { items: readonly Happening[]; without?: string }) {
  return (
    <ol class="acts">
      {items.map((item) => (
        <li key={item.seq}>
          <Ago at={item.at} />
          <ActBadge item={item} />
          <span class="text">
            {item.about !== without && <><About item={item} /> · </>}
            {item.text}
            <Times item={item} />
          </span>
        </li>
      ))}
    </ol>
  )
}
