// The metrics by which a node is judged, each with its value, age and limit.

import type { Term } from '../api.ts'
import { age, figure, percent, UNKNOWN } from '../format.ts'
import { Icon } from './bits.tsx'

export function Terms({ terms, caption }: { terms: readonly Term[]; caption: string }) {
  if (terms.length === 0) return <p class="muted">No metric is asked for: pods are placed by requests alone.</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class="terms">
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Metric</th>
            <th scope="col">Value and limit</th>
            <th scope="col" class="num">Age</th>
            <th scope="col">From</th>
            <th scope="col" class="num">Weight</th>
          </tr>
        </thead>
        <tbody>
          {terms.map((term) => {
            const over = term.value !== null && term.limit !== null && term.value > term.limit
            return (
              <tr key={term.metric}>
                <th scope="row"><code>{term.metric}</code></th>
                <td>
                  <span class={over ? 'against bad' : 'against'}>
                    {over && <Icon of="up" />} {term.value === null ? 'not known' : percent(term.value)}
                    <span class="muted">{term.limit === null ? ', no limit' : `${term.value === null ? ', at' : ' of at'} most ${percent(term.limit)}`}</span>
                  </span>
                  {term.reason !== null && <small class="reason">{term.reason}</small>}
                </td>
                <td class="num" data-name="age">{term.ageSeconds === null ? UNKNOWN : age(term.ageSeconds)}</td>
                <td data-name="from">{term.source ?? UNKNOWN}</td>
                <td class="num" data-name="weight">{term.weight === null ? UNKNOWN : figure(term.weight)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
