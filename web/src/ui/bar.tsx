// A node as a bar: what is used, what is on its way, what was requested, and the line.

import type { Amount, Resource } from '../api.ts'
import { amount as text, amountOf, percent } from '../format.ts'
import { expected, expectedShare, isOver, room } from '../nodes.ts'

export interface Parts {
  /** All as shares of what there is; what is not known is null. */
  requested: number | null
  measured: number | null
  leaving: number
  arriving: number
  incoming: number
  line: number | null
  over: boolean
}

const place = (share: number) => `${(Math.min(1, Math.max(0, share)) * 100).toFixed(2)}%`

export function Bar({ parts, label, big }: { parts: Parts; label: string; big?: boolean }) {
  const { requested, measured, leaving, arriving, incoming, line, over } = parts
  const used = measured ?? 0
  const end = used + arriving + incoming
  const hot = line !== null && used - leaving > line
  return (
    <div class={`bar${big === true ? ' big' : ''}${over ? ' over' : ''}${hot ? ' hot' : ''}`} role="img" aria-label={label}>
      {measured === null && <span class="unknown" />}
      <span class="used" style={{ width: place(used) }} />
      {leaving > 0 && <span class="leaving" style={{ left: place(used - leaving), width: place(Math.min(used, leaving)) }} />}
      {arriving > 0 && <span class="arriving" style={{ left: place(used), width: place(Math.min(1, used + arriving) - Math.min(1, used)) }} />}
      {incoming > 0 && (
        <span class="incoming" style={{ left: place(used + arriving), width: place(Math.min(1, end) - Math.min(1, used + arriving)) }} />
      )}
      {requested !== null && <span class="requested" style={{ width: place(requested) }} />}
      {line !== null && <span class="line" style={{ left: place(line) }} />}
      {end > 1.0001 && <span class="beyond">›</span>}
    </div>
  )
}

const of = (value: number | null, all: number | null) => (value === null || all === null || all <= 0 ? null : value / all)

export function parts(amount: Amount): Parts {
  const { allocatable } = amount
  return {
    requested: of(amount.requested, allocatable),
    measured: of(amount.measured, allocatable),
    leaving: of(amount.departing, allocatable) ?? 0,
    arriving: of(amount.arriving, allocatable) ?? 0,
    incoming: 0,
    line: of(amount.line, allocatable),
    over: isOver(amount),
  }
}

/** The bar in words. */
export function inWords(resource: Resource, amount: Amount): string {
  const name = resource === 'cpu' ? 'CPU' : 'Memory'
  const measured = amount.measured === null ? 'not measured' : `${amountOf(resource, amount.measured)} measured`
  const left = room(amount)
  const words = [
    `${measured}${amount.allocatable === null ? '' : ` of ${amountOf(resource, amount.allocatable)}`}`,
    ...(amount.arriving !== null && amount.arriving > 0 ? [`${text(resource, amount.arriving)} arriving`] : []),
    ...(amount.departing !== null && amount.departing > 0 ? [`${text(resource, amount.departing)} leaving`] : []),
    `${text(resource, amount.requested)} requested`,
    amount.line === null ? 'no line' : `line at ${text(resource, amount.line)}`,
    ...(left === null ? [] : [left < 0 ? `${text(resource, -left)} over the line` : `room for ${text(resource, left)}`]),
  ]
  return `${name}: ${words.join(', ')}`
}

export const AmountBar = ({ resource, amount, big }: { resource: Resource; amount: Amount; big?: boolean }) => (
  <Bar parts={parts(amount)} label={inWords(resource, amount)} {...(big === true ? { big } : {})} />
)

/** How full, and how much room is left, in figures. */
export function Figures({ resource, amount }: { resource: Resource; amount: Amount }) {
  const left = room(amount)
  return (
    <span class="figures">
      <b>{percent(expectedShare(amount))}</b>
      <span class="of">
        {text(resource, expected(amount))} of {text(resource, amount.allocatable)}
      </span>
      <span class={left !== null && left < 0 ? 'left bad' : 'left'}>
        {left === null ? 'no line' : left < 0 ? `${text(resource, -left)} over` : `${text(resource, left)} room`}
      </span>
    </span>
  )
}

export const Legend = ({ incoming }: { incoming?: boolean }) => (
  <ul class="legend" aria-label="What the bars show">
    <li><span class="swatch used" /> measured</li>
    <li><span class="swatch arriving" /> {incoming === true ? 'pending: placed, not measured yet' : 'arriving: placed, not measured yet'}</li>
    {incoming === true ? <li><span class="swatch incoming" /> this pod</li> : <li><span class="swatch leaving" /> leaving</li>}
    {incoming !== true && <li><span class="swatch requested" /> requested</li>}
    <li><span class="swatch line" /> the line</li>
  </ul>
)
