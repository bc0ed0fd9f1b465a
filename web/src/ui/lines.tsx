// The lines an agent holds its node to, and what it did about them.

import type { MeasuredAct, Protection, RuleLine } from '../api.ts'
import { inUnit, UNKNOWN } from '../format.ts'
import { toPod } from '../route.ts'
import { Ago, Badge, Icon } from './bits.tsx'

/** What a rule's phase means. */
const PHASES: Record<string, string> = { idle: 'below its line', triggered: 'acting', holding: 'holding on', restored: 'given back' }

function State({ of: { used, phase }, over }: { of: RuleLine; over: boolean }) {
  if (phase === 'error' || used === null) return <Badge of="ask" tone="warn">not measured</Badge>
  if (over) return <Badge of="up" tone="bad">{phase === 'triggered' || phase === 'holding' ? 'over its line, acting' : 'over its line'}</Badge>
  return <Badge of="yes" tone={phase === 'triggered' || phase === 'holding' ? 'warn' : 'good'}>{phase === null ? 'below its line' : (PHASES[phase] ?? phase)}</Badge>
}

/** How much is still to be released, or may be given back. While a line is passed, what was asked for may already be enough. */
export function gap({ gap, gapUnit }: RuleLine, over: boolean): string {
  if (gap === null) return UNKNOWN
  if (gap > 0) return `${inUnit(gap, gapUnit)} to release`
  if (over) return 'enough is on its way'
  return gap === 0 ? UNKNOWN : `${inUnit(-gap, gapUnit)} may be given back`
}

export function Rules({ of, name }: { of: Protection; name: string }) {
  return (
    <section class="card" aria-labelledby="rules">
      <h2 id="rules">Lines its agent holds it to <span class="muted">{of.rules.length}</span></h2>
      {of.by === 'metrics' && <p class="muted">Worked out from the rules of the cluster and the metrics API; what its agent measures and does, it alone knows.</p>}
      {of.rules.length === 0 ? <p class="note">No rule is about this node.</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Rules of ${name}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Rule</th>
                <th scope="col">Metric</th>
                <th scope="col" class="num">Now</th>
                <th scope="col" class="num">Line</th>
                <th scope="col">Above it</th>
                <th scope="col">State</th>
                <th scope="col" class="num">Gap</th>
              </tr>
            </thead>
            <tbody>
              {of.rules.map((rule) => {
                const over = rule.used !== null && rule.used > rule.line
                return (
                  <tr key={rule.rule}>
                    <th scope="row">{rule.rule}</th>
                    <td><code>{rule.metric}</code></td>
                    <td class={over ? 'num bad' : 'num'}>{over && <Icon of="up" />} {rule.used === null ? UNKNOWN : inUnit(rule.used, rule.unit)}</td>
                    <td class="num">{inUnit(rule.line, rule.unit)}</td>
                    <td>{rule.action}{rule.preview && <span class="muted"> · only said, not done</span>}</td>
                    <td><State of={rule} over={over} /></td>
                    <td class="num">{gap(rule, over)}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

const ACT_WORDS = { throttled: ['slow', 'warn', 'slowed down'], restored: ['back', 'good', 'given back'], evicted: ['gone', 'bad', 'sent away'] } as const

/** What its agent did, and what that released, against what it expected. */
export function MeasuredActs({ of }: { of: readonly MeasuredAct[] }) {
  return (
    <section class="card" aria-labelledby="done">
      <h2 id="done">What its agent did, and what came of it</h2>
      <ol class="acts">
        {of.map((one) => {
          const [glyph, tone, word] = ACT_WORDS[one.act]
          const unit = one.resource === 'cpu' ? 'millicores' : one.resource === 'memory' ? 'bytes' : ''
          return (
            <li key={`${one.at} ${one.pod} ${one.container ?? ''} ${one.resource}`}>
              <Ago at={one.at} />
              <Badge of={glyph} tone={tone}>{word}</Badge>
              <span class="text">
                <a href={toPod(one.pod)}>{one.pod}</a> · {one.rule}: {one.act === 'restored' ? 'at most' : 'expected'} {inUnit(one.predicted, unit)} {one.act === 'restored' ? 'more' : 'less'},{' '}
                {one.measured !== null ? <b>measured {inUnit(one.measured, unit)}</b> : one.pending ? 'not measured yet' : 'could not be measured'}
              </span>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
