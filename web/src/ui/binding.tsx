// Why so many replicas there, and none here?

import * as api from '../fleet.ts'
import type { BindingExplanation, Division, Estimate, Feasible } from '../fleet.ts'
import { age, clock, figure, grouped, plural, UNKNOWN } from '../format.ts'
import { usePolled } from '../store.ts'
import { Ago, Badge, Icon, Missing, Title, Waiting, Warnings } from './bits.tsx'

/** What Karmada calls no limit. */
const NO_LIMIT = 2 ** 31 - 1

export function BindingView({ namespace, name }: { namespace: string; name: string }) {
  const path = [namespace, name].filter((part) => part !== '').map(encodeURIComponent).join('/')
  const { data, failing } = usePolled(`fleet/bindings/${path}`, api.bindingExplanation, 5000)
  return (
    <>
      <p class="up"><a href="#/fleet?of=bindings">← The fleet</a></p>
      <Title>{namespace === '' ? name : `${namespace}/${name}`}</Title>
      {data !== null ? <Explained of={data} /> : failing === null ? <Waiting what="why its replicas are where they are" /> : failing.status === 404 ? (
        <p class="note">There is no binding of this name, or no longer: {failing.message}</p>
      ) : (
        <Missing what="Its reasons are" failing={failing} />
      )}
    </>
  )
}

const isWhole = (of: Partial<Division>): of is Division => Array.isArray(of.feasible) && Array.isArray(of.filtered)

function Explained({ of }: { of: BindingExplanation }) {
  const { decision, now, condition } = of
  // The last decision says why it is where it is; without one, what would be decided now.
  const shown = decision ?? (isWhole(now) ? now : null)
  return (
    <>
      <p class="lead">
        A binding of Karmada: its replicas are divided among clusters by how many more would <b>fit</b> on each.{' '}
        {of.ours ? '' : <>It is decided by <b>{of.scheduler}</b>, or suspended.</>}
      </p>
      <div class={of.clusters.length === 0 ? 'answer none' : 'answer'}>
        <p>
          <Icon of={of.clusters.length === 0 ? 'no' : 'star'} /> <b>It is on {api.where(of.clusters)}.</b>{' '}
          {decision === null ? 'Nobody here remembers how that was decided; below: how each cluster is judged now, by what it says of itself.' : <>Decided <Ago at={decision.at} />: {decision.why}.</>}
        </p>
        <p class="muted">{condition?.message ?? 'Nothing was said about it yet.'}{shown !== null && shown.shortfall > 0 && ` ${plural(shown.shortfall, 'replica')} found no room.`}</p>
      </div>
      {(now.would ?? []).length > 0 && (
        <section class="card" aria-labelledby="would">
          <h2 id="would">What would change it</h2>
          <ul class="reasons">{(now.would ?? []).map((one) => <li key={one}>{one}</li>)}</ul>
        </section>
      )}
      {now.wouldChange && isWhole(now) && <p class="but"><b>Now it would get {api.where(now.targets)}:</b> {now.why ?? 'something changed'}.</p>}
      {shown === null ? <p class="note">Nothing can be said about clusters: {now.why ?? condition?.message ?? 'it cannot be divided'}</p> : (
        <>
          <Warnings of={shown.warnings} />
          <section class="card" aria-labelledby="candidates">
            <h2 id="candidates">Cluster by cluster <span class="muted">{decision === null ? `now, ${clock(now.at)}` : 'when it was decided'}</span></h2>
            <Table of={shown} name={of.binding} />
          </section>
        </>
      )}
    </>
  )
}

function Table({ of, name }: { of: Division; name: string }) {
  const gets = (cluster: string) => of.targets.find((one) => one.name === cluster)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Clusters of ${name}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Cluster</th>
            <th scope="col" class="num">Gets</th>
            <th scope="col" class="num">Would fit</th>
            <th scope="col" class="num">Score</th>
            <th scope="col">Who says how many would fit</th>
          </tr>
        </thead>
        <tbody>
          {of.feasible.map((one) => <Fits key={one.name} of={one} gets={gets(one.name)} />)}
          {of.filtered.map(({ name, reason }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="num"><Badge of="no" tone="bad">no</Badge></td>
              <td colSpan={3} class="bad">{reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Fits({ of, gets }: { of: Feasible; gets: api.Share | undefined }) {
  return (
    <tr>
      <th scope="row">{of.name}</th>
      <td class="num">{gets === undefined ? <span class="muted">none</span> : <b>{gets.replicas === null || gets.replicas === undefined ? 'all of it' : grouped(gets.replicas)}</b>}</td>
      <td class="num">{count(of.available)}</td>
      <td class="num">{figure(of.score)}</td>
      <td>{of.estimates.length === 0 ? UNKNOWN : of.estimates.map((one, at) => <span key={one.by}>{at > 0 && ', '}<Said of={one} /></span>)}</td>
    </tr>
  )
}

const count = (value: number) => (value >= NO_LIMIT ? 'any number' : grouped(value))

const Said = ({ of }: { of: Estimate }) => (
  <>
    {of.by} {of.problem !== null && of.problem !== undefined ? <span class="bad">{of.problem}</span> : <b>{of.count === null ? 'no opinion' : count(of.count)}</b>}
    {of.ageSeconds !== null && of.ageSeconds !== undefined && <span class="muted"> ({age(of.ageSeconds)} ago)</span>}
  </>
)
