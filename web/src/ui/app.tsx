// The frame: where one is, how fresh it is, and the view.

import { useEffect, useState } from 'preact/hooks'
import * as api from '../api.ts'
import { fleet } from '../fleet.ts'
import { age, clock, grouped } from '../format.ts'
import { usePlace } from '../place.ts'
import type { Failing } from '../poll.ts'
import type { Route } from '../route.ts'
import { hurry, told, usePolled, useTick } from '../store.ts'
import { choose, chosen, THEMES } from '../theme.ts'
import { Guard, Title, Waiting } from './bits.tsx'
import { ClusterView } from './cluster.tsx'
import { DataView } from './data.tsx'
import { DecisionsView } from './decisions.tsx'
import { BindingView } from './binding.tsx'
import { FleetView } from './fleet.tsx'
import { NodeView } from './node.tsx'
import { PlacementView } from './placement.tsx'
import { PodView } from './pod.tsx'
import { ProtectionView } from './protection.tsx'

const NAMES: Record<Route['view'], string> = {
  cluster: 'Cluster', node: 'Node', decisions: 'Decisions', pod: 'Pod', protection: 'Protection', data: 'Data', fleet: 'Fleet', placement: 'Placement', binding: 'Binding',
}
const FAST = 2000
const SLOW = 10_000

export function App() {
  const { route } = usePlace()
  const all = usePolled('cluster', api.cluster, ['cluster', 'protection', 'data'].includes(route.view) ? FAST : SLOW)
  const hasFleet = useHasFleet()
  const cluster = all.data
  useEffect(() => {
    if (cluster !== null) told(cluster.at, all.at)
  }, [cluster])
  const name = route.view === 'node' ? route.name : 'namespace' in route ? [route.namespace, route.name].filter((part) => part !== '').join('/') : NAMES[route.view]
  useEffect(() => {
    document.title = `${name} · ${cluster?.cluster ?? 'Loadline'} · Loadline`
  }, [name, cluster?.cluster])
  const views: readonly Route['view'][] = ['cluster', 'decisions', 'protection', 'data', ...(hasFleet ? (['fleet'] as const) : [])]
  const current = route.view === 'node' ? 'cluster' : route.view === 'pod' ? 'decisions' : 'namespace' in route ? 'fleet' : route.view
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('title')?.focus() }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href="#/" aria-label="Loadline, cluster">
          <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
            <circle cx="16" cy="16" r="9" fill="none" stroke="currentColor" stroke-width="4" />
            <path d="M1 16h30" class="plimsoll" stroke-width="4" />
          </svg>
          Loadline
        </a>
        <span class="cluster-name" title="Cluster">{cluster?.cluster ?? ''}</span>
        <nav aria-label="Views">
          {views.map((view) => (
            <a key={view} href={view === 'cluster' ? '#/' : `#/${view}`} aria-current={view === current ? 'page' : undefined}>
              {NAMES[view]}
              {view === 'decisions' && cluster !== null && cluster.waitingPods > 0 && <span class="pill"><span class="hidden">, waiting: </span>{grouped(cluster.waitingPods)}</span>}
            </a>
          ))}
        </nav>
        <Live at={all.at} failing={all.failing} />
        <Theme />
      </header>
      {all.failing !== null && <Silence failing={all.failing} has={cluster !== null} />}
      <main id="main" class={all.failing !== null && cluster !== null ? 'stale' : ''}>
        <Guard key={`${route.view} ${name}`}>
          {route.view === 'node' ? <NodeView key={name} name={route.name} targets={cluster?.targets ?? null} />
            : route.view === 'pod' ? <PodView key={name} namespace={route.namespace} name={route.name} />
            : route.view === 'decisions' ? <DecisionsView waiting={cluster?.waitingPods ?? null} />
            : route.view === 'protection' ? <ProtectionView cluster={cluster} />
            : route.view === 'fleet' ? <FleetView />
            : route.view === 'placement' ? <PlacementView key={name} namespace={route.namespace} name={route.name} />
            : route.view === 'binding' ? <BindingView key={name} namespace={route.namespace} name={route.name} />
            : cluster === null ? <><Title>{NAMES[route.view]}</Title>{all.failing === null && <Waiting what="the cluster" />}</>
            : route.view === 'data' ? <DataView cluster={cluster} />
            : <ClusterView cluster={cluster} />}
        </Guard>
      </main>
      <footer>Read-only: nothing on this page changes the cluster. The same answers in a terminal: <code>loadline explain</code>.</footer>
    </>
  )
}

/** What is wrong, by the status of the answer; 0: there was none. */
const wrong = (status: number) =>
  status === 401 || status === 403 ? 'Not allowed to look' : status === 404 ? 'Not ready' : 'Not answering'

/** Nobody answers: since when, and when it is tried again. */
function Silence({ failing, has }: { failing: Failing; has: boolean }) {
  useTick(1000)
  const wait = Math.max(0, Math.round((failing.again - Date.now()) / 1000))
  return (
    <section class="silence" aria-label="Connection">
      <p role="alert">
        <b>{wrong(failing.status)} since {clock(failing.since)}:</b> {failing.message}.{failing.status === 401 ? ' Open the page with the address that was printed, it has the token.' : ''} {has ? 'What is shown is from then.' : ''}
      </p>
      <span class="again">{wait > 0 ? `Asking again in ${wait} s` : 'Asking …'}</span>
      <button type="button" onClick={hurry}>Ask now</button>
    </section>
  )
}

function Live({ at, failing }: { at: number | null; failing: Failing | null }) {
  useTick(1000)
  if (at === null) return <span class="live" />
  const seconds = (Date.now() - at) / 1000
  return (
    <span class={failing === null ? 'live' : 'live old'} title="How old the picture is">
      {failing === null ? (seconds < 12 ? 'live' : `${age(seconds)} old`) : `${age(seconds)} old`}
    </span>
  )
}

function Theme() {
  const [theme, set] = useState(chosen)
  const onChange = (next: string) => {
    choose(next)
    set(next)
  }
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select value={theme} onChange={(event) => onChange(event.currentTarget.value)}>
        {THEMES.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  )
}

const SELDOM = 30_000

/** Is there a fleet? Asked again: a hub may answer later, and get its kinds while it is looked at. What was there stays. */
function useHasFleet(): boolean {
  const { data } = usePolled('fleet', fleet, SELDOM)
  return data?.apis.some((one) => one.there) ?? false
}
