// How fresh is what is known?

import { useMemo } from 'preact/hooks'
import type { Amount, Basis, Cluster, NodeRow, Source } from '../api.ts'
import { age, clock, grouped, plural } from '../format.ts'
import { byName, isStale, matching } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toNode } from '../route.ts'
import { useHappenings } from '../store.ts'
import { Acts } from './acts.tsx'
import { Badge, Choice, Filter, Icon, NARROW, Title, useMedia } from './bits.tsx'
import { List } from './list.tsx'

const BASES: readonly (readonly [Basis, string, string])[] = [
  ['measured', 'measured', 'A fresh sample: used as it is.'],
  ['late', 'late', 'An older sample, up to five minutes: used, and everything placed since is added.'],
  ['annotation', 'annotation', 'No sample, but a fresh five-minute mean written on the node: used instead.'],
  ['estimates', 'estimates', 'Nothing measured: what its pods are expected to use is added up.'],
  ['nothing', 'nothing', 'Nothing known: never taken for idle.'],
]

const SHOW = [
  ['stale', 'Old or missing'],
  ['all', 'All'],
] as const

/** What is measured comes every few seconds; watches of which nothing changes are heard of every minute or two. */
const OLD_SOURCE_SECONDS: Readonly<Record<string, number>> = { measurements: 90, 'measurements of pods': 90, annotations: 360 }
const OLD_WATCH_SECONDS = 300
const isBad = (source: Source) => source.problem !== null || source.ageSeconds === null || source.ageSeconds > (OLD_SOURCE_SECONDS[source.name] ?? OLD_WATCH_SECONDS)

export function DataView({ cluster }: { cluster: Cluster }) {
  const [show, setShow] = useParam('show', 'stale')
  const [filter, setFilter] = useParam('q', '')
  const narrow = useMedia(NARROW)
  const { buffer, version } = useHappenings()
  const news = useMemo(() => buffer.of('data').slice(0, 20), [version])
  const counts = useMemo(() => {
    const out = new Map<string, number>()
    for (const node of cluster.nodes) out.set(node.cpu.basis, (out.get(node.cpu.basis) ?? 0) + 1)
    return out
  }, [cluster])
  const shown = useMemo(() => {
    const stale = show === 'all' ? cluster.nodes : cluster.nodes.filter((node) => isStale(node.cpu) || isStale(node.memory))
    const oldest = (node: NodeRow) => Math.max(node.cpu.ageSeconds ?? Infinity, node.memory.ageSeconds ?? Infinity)
    return [...matching(stale, filter, (node: NodeRow) => node.name)].sort((a, b) => {
      const [x, y] = [oldest(a), oldest(b)]
      return x === y ? byName(a, b) : y > x ? 1 : -1
    })
  }, [cluster, show, filter])
  return (
    <>
      <Title>Data</Title>
      <p class="lead">
        Every decision rests on what is known, and on how old that is. Here is how fresh each source is, and what is used where data are <b>old</b> or{' '}
        <b>missing</b>: what is unknown is never taken for idle.
      </p>
      <section class="card" aria-labelledby="sources">
        <h2 id="sources">Sources</h2>
        {!cluster.ready && <p class="note warn"><Icon of="ask" /> Not everything was read yet; figures may be incomplete.</p>}
        <ul class="sources">
          {cluster.sources.map((source) => {
            const bad = isBad(source)
            return (
              <li key={source.name}>
                {bad ? <Badge of="up" tone={source.problem !== null ? 'bad' : 'warn'}>{source.problem !== null ? 'problem' : source.ageSeconds === null ? 'never' : 'old'}</Badge> : <Badge of="yes" tone="good">fresh</Badge>}
                <b>{source.name}</b>
                <span>{source.ageSeconds === null ? 'never heard of' : `${age(source.ageSeconds)} old`}</span>
                {source.problem !== null && <span class="bad">{source.problem}</span>}
              </li>
            )
          })}
        </ul>
        <p class="muted">As of {clock(cluster.at)} by the program's clock.</p>
      </section>
      <section class="card" aria-labelledby="bases">
        <h2 id="bases">What nodes are judged by <span class="muted">CPU</span></h2>
        <dl class="bases">
          {BASES.map(([basis, name, meaning]) => (
            <div key={basis} class={(counts.get(basis) ?? 0) === 0 ? 'none' : ''}>
              <dt>{name}</dt>
              <dd><b>{plural(counts.get(basis) ?? 0, 'node')}</b> <span>{meaning}</span></dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-labelledby="stale">
        <div class="bench">
          <h2 id="stale">Nodes <span class="muted">{grouped(shown.length)}</span></h2>
          <Choice label="Which nodes" value={show === 'all' ? 'all' : 'stale'} of={SHOW} set={setShow} />
          <Filter label="Filter by name" value={filter} set={setFilter} />
        </div>
        {shown.length === 0 ? (
          <p class="note">{filter !== '' ? `None is called like “${filter}”.` : cluster.nodes.length === 0 ? 'There are no nodes yet.' : 'Every node has fresh data.'}</p>
        ) : (
          <List items={shown} rowHeight={narrow ? 66 : 36} keyOf={(node) => node.name} label="Nodes and the age of their data">
            {(node) => (
              <a class="row datum" href={toNode(node.name)}>
                <span class="name" title={node.name}>{node.name}</span>
                <Freshness name="CPU" of={node.cpu} />
                <Freshness name="Memory" of={node.memory} />
              </a>
            )}
          </List>
        )}
      </section>
      {news.length > 0 && (
        <section class="card" aria-labelledby="news">
          <h2 id="news">What was said about data</h2>
          <Acts items={news} />
        </section>
      )}
    </>
  )
}

const Freshness = ({ name, of }: { name: string; of: Amount }) => (
  <span class="fresh">
    {name} {isStale(of) ? <Badge of="ask" tone={of.basis === 'nothing' ? 'bad' : 'warn'}>{of.basis}</Badge> : <Badge of="yes" tone="good">fresh</Badge>}{' '}
    <span class="muted">{of.ageSeconds === null ? '' : age(of.ageSeconds)}</span>
  </span>
)
