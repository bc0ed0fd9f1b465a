// Why here, why not there.

import { useMemo, useState } from 'preact/hooks'
import * as api from '../api.ts'
import type { Decision, LoadLine, PodExplanation, Resource, Verdict } from '../api.ts'
import { age, amount as text, clock, exact, figure, plural, quantity, UNKNOWN, words } from '../format.ts'
import { matching } from '../nodes.ts'
import { toNode, toPod } from '../route.ts'
import { useHappenings, usePolled } from '../store.ts'
import { decisive, ranked, refusals as refused, whyChosen, whyThen } from '../verdicts.ts'
import { Acts } from './acts.tsx'
import { Ago, Badge, Filter, Icon, Missing, Title, Waiting, Warnings } from './bits.tsx'
import { Bar, Legend } from './bar.tsx'
import { Terms } from './terms.tsx'

const FEW = 20
const MANY = 200
const MOST_TOLD = 50

export function PodView({ namespace, name }: { namespace: string; name: string }) {
  const [most, setMost] = useState(FEW)
  const path = `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}?nodes=${most}`
  const { data, failing } = usePolled(path, api.podExplanation, 5000)
  return (
    <>
      <p class="up"><a href="#/decisions">← All decisions</a></p>
      <Title>{namespace}/{name}</Title>
      {data !== null ? <Explained of={data} more={most < MANY ? () => setMost(MANY) : null} /> : failing === null ? (
        <Waiting what="why it is where it is" />
      ) : failing.status === 404 ? (
        <p class="note">There is no pod of this name, or no longer: {failing.message}</p>
      ) : (
        <Missing what="Its reasons are" failing={failing} />
      )}
      <Told pod={`${namespace}/${name}`} />
    </>
  )
}

/** What was said about it: also when it is gone. */
function Told({ pod }: { pod: string }) {
  const { buffer, version } = useHappenings()
  const items = useMemo(() => buffer.of('decision', 'protection', 'rebalance', 'data', 'other').filter((item) => item.kind === 'Pod' && item.about === pod).slice(0, MOST_TOLD), [pod, version])
  return items.length === 0 ? null : (
    <section class="card" aria-labelledby="told">
      <h2 id="told">What happened to it</h2>
      <Acts items={items} without={pod} />
    </section>
  )
}

function Explained({ of, more }: { of: PodExplanation; more: (() => void) | null }) {
  const { now } = of
  const decisions = [...of.decisions].sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
  const last = decisive(decisions, of.node)
  const before = decisions.filter((one) => one !== last)
  const moves = of.moves ?? []
  return (
    <>
      <p class="lead">
        {of.node !== null ? <><Badge of="yes" tone="good">placed</Badge> It is on <a href={toNode(of.node)}>{of.node}</a>.</>
          : now === null ? <><Badge of="gone" tone="calm">gone</Badge> It is not there any more, or is over. Below: what is remembered of it.</>
          : <><Badge of="no" tone="bad">no node</Badge> It has no node yet.</>}
      </p>
      {last !== null ? <Then of={last} /> : of.node !== null && (
        <p class="note">How this was decided is not known here: only the scheduler that decides remembers it, and none was asked, or it has decided much since. Below: how each node is judged now.</p>
      )}
      {before.length > 0 && (
        <section class="card" aria-labelledby="before">
          <h2 id="before">What was decided before</h2>
          <ol class="acts">
            {before.map((one) => (
              <li key={one.at}>
                <Ago at={one.at} />
                {one.node === null ? <Badge of="no" tone="bad">no node</Badge> : <Badge of="yes" tone="good">placed</Badge>}
                <span class="text">{told(one)}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {moves.length > 0 && (
        <section class="card" aria-labelledby="moves">
          <h2 id="moves">Who was moved</h2>
          <ol class="acts">
            {moves.map((one) => (
              <li key={`${one.at} ${one.pod}`}>
                <Ago at={one.at} />
                <Badge of="gone" tone="calm">moved</Badge>
                <span class="text">{one.pod === of.pod ? 'it' : <>in whose place it may be: <a href={toPod(one.pod)}>{one.pod}</a></>} · from <a href={toNode(one.from)}>{one.from}</a>: {one.message}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {now !== null && <Now of={of} now={now} more={more} />}
    </>
  )
}

/** What was decided, and what that rested on then. */
function Then({ of }: { of: Decision }) {
  const refusals = of.refusals ?? []
  const lines = (['cpu', 'memory'] as const).flatMap((resource) => {
    const line = of.load?.[resource]
    return line === null || line === undefined ? [] : [{ resource, line }]
  })
  return (
    <section aria-labelledby="then">
      <h2 id="then">What was decided</h2>
      <div class={of.node === null ? 'answer none' : 'answer'}>
        {of.node === null ? (
          <p><Icon of="no" /> <b>It found no node.</b> {of.message}</p>
        ) : (
          <p><Icon of="star" /> <b>It went to <a href={toNode(of.node)}>{of.node}</a>.</b> {whyThen(of)} {of.message}</p>
        )}
        {lines.map(({ resource, line }) => <Equation key={resource} resource={resource} of={line} outer />)}
        <p class="muted">
          <Ago at={of.at} />, by {of.scheduler}{of.feasibleNodes === null ? '' : `: ${plural(of.feasibleNodes, 'node')} could take it`}
          {refused(of.refusedNodes ?? {}) !== '' && `, of the others ${refused(of.refusedNodes ?? {})}`}.
        </p>
      </div>
      {refusals.length > 0 && (
        <>
          <h3>Why not there</h3>
          <ul class="reasons">
            {refusals.map(({ rule, node, reason }) => (
              <li key={rule}><Icon of="no" /> <span><a href={toNode(node)}>{node}</a>: {reason ?? words(rule)}{others(of.refusedNodes?.[rule])}</span></li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

const others = (count: number | undefined) => (count === undefined || count < 2 ? '' : `; ${plural(count - 1, 'other')} for such a reason`)

function Now({ of, now, more }: { of: PodExplanation; now: NonNullable<PodExplanation['now']>; more: (() => void) | null }) {
  const [filter, setFilter] = useState('')
  const nodes = ranked(now.nodes, now.node, of.node)
  const shown = matching(nodes, filter, (one: Verdict) => one.node)
  const fits = nodes.filter((one) => one.fits).length
  const firstRefused = nodes.find((one) => !one.fits)
  return (
    <section aria-labelledby="why">
      <h2 id="why">{now.anotherLikeIt ? 'Where would another pod like it go now?' : 'Where would it go now?'}</h2>
      <div class={now.node === null ? 'later none' : 'later'}>
        {now.node === null ? (
          <p><Icon of="no" /> <b>Nowhere.</b> {now.message}</p>
        ) : (
          <p><Icon of="star" /> <b>To <a href={toNode(now.node)}>{now.node}</a>.</b> {whyChosen(now.nodes, now.node)} {now.message}</p>
        )}
        <p class="muted">
          Asked at {clock(now.at)}. Of {plural(nodes.length, 'node')} shown, {fits} can take it, {nodes.length - fits} cannot.
          {of.node !== null && now.node !== null && of.node !== now.node && ` Nodes are judged as they are now, with this pod on ${of.node}.`}
          {now.recommendation !== null && now.recommendation !== undefined && ` What it is expected to use says the recommendation ${now.recommendation.name}${now.recommendation.ageSeconds === null ? '' : `, ${age(now.recommendation.ageSeconds)} old`}${now.recommendation.message === null || now.recommendation.message === 'Success' ? '' : `: ${now.recommendation.message}`}.`}
        </p>
      </div>
      <div class="bench">
        <h3>Node by node</h3>
        {nodes.length > 5 && <Filter label="Filter by name" value={filter} set={setFilter} />}
      </div>
      <Legend incoming />
      {shown.map((one) => (
        <One key={one.node} of={one} chosen={one.fits && one.node === now.node} here={one.node === of.node} open={now.node === null && one === firstRefused} />
      ))}
      {now.moreNodes > 0 && (
        <p class="note">
          {plural(now.moreNodes, 'more node')} not shown.{' '}
          {more !== null && <button type="button" onClick={more}>Show up to {MANY}</button>}
        </p>
      )}
    </section>
  )
}

function told(one: Decision): string {
  const refusals = refused(one.refusedNodes ?? {})
  const feasible = one.feasibleNodes === null ? '' : `${plural(one.feasibleNodes, 'node')} could take it`
  const others = refusals === '' ? '' : `of the others ${refusals}`
  const counts = [feasible, others].filter((part) => part !== '').join(', ')
  if (one.node === null) return `${one.scheduler} found no node: ${one.message ?? counts}`
  const where = `${one.scheduler} chose ${one.node}`
  return [where, counts, one.message ?? ''].filter((part) => part !== '').join(': ')
}

function One({ of, chosen, here, open }: { of: Verdict; chosen: boolean; here: boolean; open: boolean }) {
  const [isOpen, setOpen] = useState(open)
  return (
    <details class={`verdict ${chosen ? 'chosen' : of.fits ? 'fits' : 'refused'}`} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="mark">
          {chosen ? <Badge of="star" tone="good">chosen</Badge> : of.fits ? <Badge of="yes" tone="calm">fits</Badge> : <Badge of="no" tone="bad">no</Badge>}
        </span>
        <span class="name">{of.node}{here && <small> · it is here</small>}</span>
        <span class="score">{of.score === null ? '' : <>score <b>{of.score}</b></>}</span>
        <span class="why">{of.fits ? (chosen ? '' : 'could take it') : (of.reasons[0] ?? 'cannot take it')}</span>
      </summary>
      {isOpen && <Inside of={of} />}
    </details>
  )
}

function Inside({ of }: { of: Verdict }) {
  return (
    <div class="inside">
      {of.reasons.length > 0 && (
        <ul class="reasons">{of.reasons.map((reason) => <li key={reason}><Icon of="no" /> {reason}</li>)}</ul>
      )}
      {of.counterfactual !== null && of.counterfactual !== '' && <p class="but"><b>What would change it:</b> {of.counterfactual}</p>}
      <Warnings of={of.warnings} />
      {(['cpu', 'memory'] as const).map((resource) => {
        const line = of.load?.[resource]
        return line === null || line === undefined ? null : <Equation key={resource} resource={resource} of={line} />
      })}
      {of.scores !== null && <Scores of={of} />}
      {of.terms !== null && of.terms.length > 0 && (
        <>
          <h4>Load metrics it is judged by</h4>
          <Terms terms={of.terms} caption={`Load metrics of ${of.node}`} />
        </>
      )}
      <p><a href={toNode(of.node)}>Everything about {of.node} →</a></p>
    </div>
  )
}

/** measured + pending + incoming against the line. */
function Equation({ resource, of, outer }: { resource: Resource; of: LoadLine; outer?: boolean }) {
  const Heading = outer === true ? 'h3' : 'h4'
  const [all, measured, pending, incoming, departed] = [of.allocatable, of.measured, of.pending, of.incoming, of.departed].map(quantity)
  const share = (value: number | null | undefined) => (value === null || value === undefined || !all ? null : value / all)
  const sum = measured === null && of.basis !== 'estimates' ? null : (measured ?? 0) + (pending ?? 0) + (incoming ?? 0) - (departed ?? 0)
  const line = quantity(of.limit) ?? (of.target === null || all === null || all === undefined ? null : of.target * all)
  const over = sum !== null && line !== null && sum > line * (1 + 1e-9)
  const name = resource === 'cpu' ? 'CPU' : 'Memory'
  // Amounts come as written in the cluster, 1500m beside 5: for people, one unit for all.
  const said = (written: string | null | undefined) => (written === null || written === undefined ? UNKNOWN : resource === 'cpu' ? exact(quantity(written)) : text('memory', quantity(written)))
  const precise = (value: number | null) => (resource === 'cpu' ? exact(value) : text(resource, value))
  const formula = `${of.measured === null ? 'not measured' : `${said(of.measured)} measured`} + ${said(of.pending)} pending + ${said(of.incoming)} this pod${departed ? ` − ${said(of.departed)} leaving` : ''} = ${precise(sum)}`
  const limit = line === null ? 'no line is drawn' : `${over ? 'more than' : 'at most'} ${precise(line)} (${figure(of.target ?? 0)} of ${said(of.allocatable)})`
  return (
    <div class="sum">
      <Heading>{name}</Heading>
      <Bar
        big
        label={`${name}: ${formula}; ${limit}`}
        parts={{ requested: null, measured: share(measured), leaving: share(departed) ?? 0, arriving: share(pending) ?? 0, incoming: share(incoming) ?? 0, line: of.target, over }}
      />
      <p>{formula}, <span class={over ? 'bad' : ''}>{over && <Icon of="up" />} {limit}</span>
        {of.basis !== null && of.basis !== undefined && of.basis !== 'measured' && <small>by: {of.basis}</small>}
      </p>
    </div>
  )
}

function Scores({ of }: { of: Verdict }) {
  const rows = Object.entries(of.scores ?? {}).flatMap(([name, value]) => {
    if (value === null) return []
    if (typeof value === 'number') return [{ name: words(name), value, note: '' }]
    const note = value.hotPenalty === 0 ? `${value.base} by what is free` : `${value.base} by what is free − ${value.hotPenalty} for pods placed of late`
    return [{ name: words(name), value: value.final, note }]
  })
  if (rows.length === 0) return null
  return (
    <>
      <h4>Score {of.score === null ? '' : of.score}<span class="muted">, higher is better; each part from 0 to 100</span></h4>
      <dl class="scores">
        {rows.map(({ name, value, note }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd><span class="meter" aria-hidden="true"><span style={{ width: `${Math.max(0, Math.min(100, value))}%` }} /></span><b>{figure(value)}</b><small>{note}</small></dd>
          </div>
        ))}
      </dl>
    </>
  )
}
