// The clusters of a fleet, and what is placed on them.

import { useMemo } from 'preact/hooks'
import type { Resource } from '../api.ts'
import * as api from '../fleet.ts'
import type { Fleet, FleetAmount, FleetBinding, FleetCluster, FleetPlacement } from '../fleet.ts'
import { age, amount as text, amountOf, grouped, percent, plural, UNKNOWN } from '../format.ts'
import { matching } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toFleet } from '../route.ts'
import { usePolled } from '../store.ts'
import { Bar } from './bar.tsx'
import { Badge, Choice, Filter, Icon, Missing, NARROW, Title, useMedia, Waiting } from './bits.tsx'
import { isResource, RESOURCES } from './cluster.tsx'
import { List } from './list.tsx'

const OLD_SECONDS = 120

export function FleetView() {
  const { data: fleet, failing, at } = usePolled('fleet', api.fleet, 5000)
  return (
    <>
      <Title>Fleet</Title>
      <p class="lead">
        Every cluster of the fleet, and what is placed on them: a <b>placement</b> selects clusters by points, a <b>binding</b> divides replicas among
        them by how many would fit. Open one to read <b>why these clusters, and why not the others</b>.
      </p>
      {failing !== null && <Missing what="The fleet is" failing={failing} />}
      {fleet === null && failing === null && (at === null ? <Waiting what="the fleet" /> : <p class="note">This program shows one cluster, and no fleet.</p>)}
      {fleet !== null && <Shown of={fleet} />}
    </>
  )
}

function Shown({ of }: { of: Fleet }) {
  const problems = of.apis.flatMap((one) => one.kinds.filter(({ problem }) => problem !== null))
  const absent = of.apis.filter(({ there }) => !there)
  return (
    <>
      {of.problem !== null && <p class="note warn" role="status"><Icon of="ask" /> {of.problem}</p>}
      {of.problem === null && absent.map(({ name, group }) => (
        <p key={group} class="note">This cluster does not have the kinds of {name} (<code>{group}</code>), so there are no {group.includes('karmada') ? 'bindings' : 'placements'} to show.</p>
      ))}
      {problems.map(({ kind, problem }) => <p key={kind} class="note warn" role="status"><Icon of="ask" /> {kind} cannot be read: {problem}</p>)}
      {absent.length < of.apis.length && (
        <>
          <Clusters of={of} />
          <Placed of={of} />
        </>
      )}
    </>
  )
}

function Clusters({ of }: { of: Fleet }) {
  const [by, setBy] = useParam('by', 'cpu')
  const [filter, setFilter] = useParam('q', '')
  const narrow = useMedia(NARROW)
  const resource = isResource(by)
  const all = useMemo(() => api.clusters(of), [of])
  const shown = useMemo(() => matching(all, filter, ([name]) => name), [all, filter])
  return (
    <section aria-labelledby="clusters">
      <div class="bench">
        <h2 id="clusters">Clusters <span class="muted">{grouped(all.length)}</span></h2>
        <Choice label="Resource" value={resource} of={RESOURCES} set={setBy} />
        {all.length > 5 && <Filter label="Filter by name" value={filter} set={setFilter} />}
      </div>
      <ul class="legend" aria-label="What the bars show">
        <li><span class="swatch used" /> measured</li>
        <li><span class="swatch requested" /> requested</li>
        <li>the whole bar: what its nodes have for pods</li>
      </ul>
      {shown.length === 0 ? <p class="note">{all.length === 0 ? 'The hub knows no cluster yet.' : `No cluster is called like “${filter}”.`}</p> : (
        <List items={shown} rowHeight={narrow ? 66 : 40} keyOf={([name]) => name} label="Clusters">
          {([name, cluster]) => <Row name={name} of={cluster} resource={resource} />}
        </List>
      )}
    </section>
  )
}

const share = (value: number | null, all: number | null) => (value === null || all === null || all <= 0 ? null : value / all)

function words(resource: Resource, of: FleetAmount): string {
  const part = (name: string, value: number | null) => (value === null ? `${name}: not known` : `${amountOf(resource, value)} ${name}`)
  return `${resource === 'cpu' ? 'CPU' : 'Memory'}: ${part('measured', of.measured)}, ${part('requested', of.requested)}, of ${amountOf(resource, of.allocatable)}`
}

function Row({ name, of, resource }: { name: string; of: FleetCluster; resource: Resource }) {
  const amount = of[resource]
  const old = of.ageSeconds !== null && of.ageSeconds > OLD_SECONDS
  return (
    <div class="row member">
      <span class="name" title={`${name}: known to ${of.knownTo.join(' and ')}`}>{name}</span>
      <span class="state">
        {of.leaving ? <Badge of="gone" tone="bad">leaving</Badge>
          : of.taints.length > 0 ? <span title={of.taints.join(', ')}><Badge of="no" tone="warn">{of.taints.length === 1 ? 'taint' : `${of.taints.length} taints`}<span class="hidden">: {of.taints.join(', ')}</span></Badge></span>
          : amount.measured === null ? <Badge of="ask" tone="calm">not measured</Badge>
          : old ? <Badge of="ask" tone="warn">old</Badge> : null}
      </span>
      <Bar
        label={words(resource, amount)}
        parts={{ requested: share(amount.requested, amount.allocatable), measured: share(amount.measured, amount.allocatable), leaving: 0, arriving: 0, incoming: 0, line: null, over: false }}
      />
      <span class="figures">
        <b>{percent(share(amount.measured ?? amount.requested, amount.allocatable))}</b>
        <span class="of">{text(resource, amount.measured ?? amount.requested)} of {text(resource, amount.allocatable)}{amount.measured === null && amount.requested !== null ? ' asked' : ''}</span>
        <span class="left">{of.ageSeconds === null ? 'no age' : `${age(of.ageSeconds)} old`}</span>
      </span>
    </div>
  )
}

const OF = [
  ['placements', 'Placements'],
  ['bindings', 'Bindings'],
] as const

function Placed({ of }: { of: Fleet }) {
  const [kind, setKind] = useParam('of', of.placements.length === 0 && of.bindings.length > 0 ? 'bindings' : 'placements')
  const [filter, setFilter] = useParam('f', '')
  const narrow = useMedia(NARROW)
  const bindings = kind === 'bindings'
  const placements = useMemo(() => matching(of.placements, filter, (one: FleetPlacement) => `${one.placement} ${one.selected.join(' ')}`), [of, filter])
  const bound = useMemo(() => matching(of.bindings, filter, (one: FleetBinding) => `${one.binding} ${api.where(one.clusters)}`), [of, filter])
  const more = bindings ? of.moreBindings : of.morePlacements
  const none = bindings ? bound.length === 0 : placements.length === 0
  return (
    <section aria-labelledby="placed">
      <div class="bench">
        <h2 id="placed">What is placed <span class="muted">{plural(of.placements.length + of.morePlacements, 'placement')}, {plural(of.bindings.length + of.moreBindings, 'binding')}</span></h2>
        <Choice label="Placements or bindings" value={bindings ? 'bindings' : 'placements'} of={OF} set={setKind} />
        <Filter label="Filter by name or cluster" value={filter} set={setFilter} />
      </div>
      {none ? <p class="note">{filter === '' ? `There are no ${bindings ? 'bindings' : 'placements'} yet.` : 'None is like this.'}</p> : bindings ? (
        <List items={bound} rowHeight={narrow ? 66 : 36} keyOf={(one) => `${one.kind} ${one.binding}`} label="Bindings">
          {(one) => (
            <a class={one.scheduled === false ? 'row placed unplaced' : 'row placed'} href={toFleet('binding', one.binding)}>
              {one.scheduled === false ? <Badge of="no" tone="bad">{one.reason ?? 'not divided'}</Badge> : one.scheduled === null ? <Badge of="ask" tone="calm">waiting</Badge> : <Badge of="yes" tone="good">divided</Badge>}
              <span class="name" title={one.binding}>{one.binding}</span>
              <span class="text" title={one.message ?? ''}>
                <span class="hidden">to</span><span aria-hidden="true">→</span> <b>{api.where(one.clusters)}</b>
                <span class="muted"> {one.replicas === null ? '' : `of ${plural(one.replicas, 'replica')}`}{one.scheduled === false ? ` · ${one.message ?? ''}` : ''}</span>
              </span>
            </a>
          )}
        </List>
      ) : (
        <List items={placements} rowHeight={narrow ? 66 : 36} keyOf={(one) => one.placement} label="Placements">
          {(one) => (
            <a class={one.satisfied === false ? 'row placed unplaced' : 'row placed'} href={toFleet('placement', one.placement)}>
              {one.satisfied === false ? <Badge of="no" tone="bad">not satisfied</Badge> : one.satisfied === null ? <Badge of="ask" tone="calm">waiting</Badge> : <Badge of="yes" tone="good">satisfied</Badge>}
              <span class="name" title={one.placement}>{one.placement}</span>
              <span class="text" title={one.message ?? ''}>
                <span class="hidden">selects</span><span aria-hidden="true">→</span> <b>{one.selected.length === 0 ? UNKNOWN : one.selected.join(', ')}</b>
                <span class="muted"> {one.satisfied === false ? (one.message ?? '') : ''}</span>
              </span>
            </a>
          )}
        </List>
      )}
      {more > 0 && <p class="note">{plural(more, `more ${bindings ? 'binding' : 'placement'}`)} not shown.</p>}
    </section>
  )
}
