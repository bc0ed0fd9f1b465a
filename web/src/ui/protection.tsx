// Who was slowed down, sent away or moved, and what came back.

import { useMemo, useState } from 'preact/hooks'
import type { Cluster, NodeRow } from '../api.ts'
import { clock, grouped, plural } from '../format.ts'
import { byNode, placements, type Act, type Done, type OfNode } from '../happenings.ts'
import { matching, pressing } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toNode, toPod } from '../route.ts'
import { useHappenings } from '../store.ts'
import { ActBadge } from './acts.tsx'
import { AmountBar, Figures } from './bar.tsx'
import { Ago, Badge, Choice, Filter, NodeBadge, Tile, Times, Title } from './bits.tsx'

const KINDS = [
  ['all', 'All'],
  ['slowed', 'Slowed'],
  ['gone', 'Sent away'],
  ['moved', 'Moved'],
  ['back', 'Given back'],
] as const

const FEW = 8
const GROUPS = 30

export function ProtectionView({ cluster }: { cluster: Cluster | null }) {
  const { buffer, version, polled } = useHappenings()
  const [filter, setFilter] = useParam('q', '')
  const [kind, setKind] = useParam('kind', 'all')
  const [most, setMost] = useState(GROUPS)
  const groups = useMemo(
    () => byNode(buffer.of('protection', 'rebalance', 'data').filter((item) => item.group !== 'data' || /^LoadTaint/.test(item.reason)), placements(buffer.of('decision'))),
    [version],
  )
  const count = (wanted: Act) => groups.reduce((sum, group) => sum + group.done.filter((one) => one.act === wanted).length, 0)
  const slowed = groups.reduce((sum, group) => sum + group.slowed.length, 0)
  const shown = useMemo(() => groups.flatMap((group) => {
    const done = matching(group.done.filter((one) => kind === 'all' || one.act === kind), filter, (one: Done) => `${group.node} ${one.pod ?? ''} ${one.item.text} ${one.item.reason}`)
    return done.length === 0 ? [] : [{ ...group, done: [...done] }]
  }), [groups, kind, filter])
  const nodes = useMemo(() => new Map(cluster?.nodes.map((node) => [node.name, node])), [cluster])
  return (
    <>
      <Title>Protection and rebalance</Title>
      <p class="lead">
        When a node passes a line, its least important pods are <b>slowed down</b> or <b>sent away</b>, only as far as needed, and are <b>given back</b>{' '}
        what was taken when it is over. Pods of nodes that stay too full are <b>moved</b> to where there is room.
      </p>
      <dl class="tiles">
        <Tile name="Slowed down now" note="and not given back to yet" bad={slowed > 0}>{grouped(slowed)}</Tile>
        <Tile name="Times slowed" note="of what is shown here">{grouped(count('slowed'))}</Tile>
        <Tile name="Sent away">{grouped(count('gone'))}</Tile>
        <Tile name="Moved">{grouped(count('moved'))}</Tile>
        <Tile name="Given back">{grouped(count('back'))}</Tile>
      </dl>
      <div class="bench">
        <h2>By node <span class="muted">{grouped(shown.length)}</span></h2>
        <Choice label="What was done" value={KINDS.find(([key]) => key === kind)?.[0] ?? 'all'} of={KINDS} set={setKind} />
        <Filter label="Filter by node, pod, text" value={filter} set={setFilter} />
      </div>
      {shown.length === 0 && (
        <p class="note">
          {groups.length > 0 ? 'Nothing like this is known.' : polled.failing !== null
            ? `What happened is not known since ${clock(polled.failing.since)}: ${polled.failing.message}`
            : buffer.problem !== null ? `What happened is not known: it is told as Events, and those cannot be read: ${buffer.problem}`
            : 'Nobody was slowed down, sent away or moved. Agents and the rebalancer act only where they are told to.'}
        </p>
      )}
      {shown.slice(0, most).map((group) => {
        const node = nodes.get(group.node)
        return (
          <section key={group.node} class="card group" aria-label={group.node === '' ? 'Pods whose node is not known' : group.node}>
            <header>
              <h3>{group.node === '' ? 'Pods whose node was not said' : <a href={toNode(group.node)}>{group.node}</a>}</h3>
              {node !== undefined && <NodeBadge node={node} resource={pressing(node)} />}
              {group.slowed.length > 0 && <Badge of="slow" tone="warn">{plural(group.slowed.length, 'pod')} slowed now</Badge>}
              {node !== undefined && <Pressing node={node} />}
            </header>
            <Group of={group} />
          </section>
        )
      })}
      {shown.length > most && (
        <p><button type="button" onClick={() => setMost(most + GROUPS)}>Show {Math.min(GROUPS, shown.length - most)} more of {grouped(shown.length)} nodes</button></p>
      )}
    </>
  )
}

/** The resource that is nearer to its line, or further beyond it; said where that is not CPU. */
function Pressing({ node }: { node: NodeRow }) {
  const resource = pressing(node)
  return <>{resource === 'memory' && <span class="muted">memory</span>}<AmountBar resource={resource} amount={node[resource]} /><Figures resource={resource} amount={node[resource]} /></>
}

function Group({ of }: { of: OfNode }) {
  const [all, setAll] = useState(false)
  const shown = all ? of.done.slice(0, 500) : of.done.slice(0, FEW)
  return (
    <>
      <ol class="acts">
        {shown.map(({ pod, item }) => (
          <li key={item.seq}>
            <Ago at={item.at} />
            <ActBadge item={item} />
            <span class="text">
              {pod !== null && <><a href={toPod(pod)}>{pod}</a> · </>}
              {item.text}
              <Times item={item} />
            </span>
          </li>
        ))}
      </ol>
      {of.done.length > FEW && (
        <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Show fewer' : `Show all ${grouped(of.done.length)}`}</button>
      )}
    </>
  )
}
