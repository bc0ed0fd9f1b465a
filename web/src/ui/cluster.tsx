// Every node, and the line.

import { useMemo } from 'preact/hooks'
import * as api from '../api.ts'
import type { Cluster, History, NodeRow, Resource } from '../api.ts'
import { amount, figure, grouped, percent, plural } from '../format.ts'
import { histogram, inOrder, matching, sorted, totals, type Sort } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toNode } from '../route.ts'
import { usePolled } from '../store.ts'
import { AmountBar, Figures, Legend } from './bar.tsx'
import { Choice, Filter, Missing, NARROW, NodeBadge, Tile, Title, useHeld, useHold, useMedia } from './bits.tsx'
import { Chart } from './chart.tsx'
import { List } from './list.tsx'

const SORTS: readonly (readonly [Sort, string])[] = [
  ['load', 'most loaded'],
  ['room', 'least room'],
  ['name', 'name'],
  ['age', 'oldest data'],
]

export const RESOURCES: readonly (readonly [Resource, string])[] = [
  ['cpu', 'CPU'],
  ['memory', 'Memory'],
]

export const isResource = (text: string): Resource => (text === 'memory' ? 'memory' : 'cpu')

export function ClusterView({ cluster }: { cluster: Cluster }) {
  const [by, setBy] = useParam('by', 'cpu')
  const [order, setOrder] = useParam('sort', 'load')
  const [filter, setFilter] = useParam('q', '')
  const resource = isResource(by)
  const sort = SORTS.find(([key]) => key === order)?.[0] ?? 'load'
  const narrow = useMedia(NARROW)
  const { held, hold } = useHold()

  const inSort = useMemo(() => sorted(cluster.nodes, resource, sort), [cluster, resource, sort])
  const names = useMemo(() => inSort.map((node) => node.name), [inSort])
  const kept = useHeld(names, held, `${resource} ${sort}`)
  const nodes = useMemo(() => (kept === names ? inSort : inOrder(cluster.nodes, kept)), [cluster, kept, names, inSort])
  const shown = useMemo(() => matching(nodes, filter, (node: NodeRow) => node.name), [nodes, filter])

  return (
    <>
      <Title>Cluster</Title>
      <p class="lead">
        Each bar is a node. New pods go only where what is <b>measured</b> plus what is still <b>arriving</b> stays left of{' '}
        <b>the line</b>; what pods <b>requested</b> is only an outline. Open a node to see why it takes pods or does not.
      </p>
      <Overview cluster={cluster} resource={resource} />
      <section aria-labelledby="nodes">
        <div class="bench">
          <h2 id="nodes">
            Nodes <span class="muted">{shown.length === cluster.nodes.length ? grouped(shown.length) : `${grouped(shown.length)} of ${grouped(cluster.nodes.length)}`}</span>
          </h2>
          <Choice label="Resource" value={resource} of={RESOURCES} set={setBy} />
          <label class="select">
            <span>Order</span>
            <select value={sort} onChange={(event) => setOrder(event.currentTarget.value)}>
              {SORTS.map(([key, text]) => (
                <option key={key} value={key}>{text}</option>
              ))}
            </select>
          </label>
          <Filter label="Filter by name" value={filter} set={setFilter} />
          <span class="held" aria-hidden="true">{held && sort !== 'name' ? 'order held while you are here' : ''}</span>
        </div>
        <Legend />
        {shown.length === 0 ? (
          <p class="note">{cluster.nodes.length === 0 ? 'There are no nodes yet.' : `No node is called like “${filter}”.`}</p>
        ) : (
          <div {...hold}>
            <List items={shown} rowHeight={narrow ? 62 : 36} keyOf={(node) => node.name} label="Nodes">
              {(node) => (
                <a class="row" href={toNode(node.name)}>
                  <span class="name" title={node.name}>{node.name}</span>
                  <span class="state"><NodeBadge node={node} resource={resource} /></span>
                  <AmountBar resource={resource} amount={node[resource]} />
                  <Figures resource={resource} amount={node[resource]} />
                </a>
              )}
            </List>
          </div>
        )}
      </section>
    </>
  )
}

function Overview({ cluster, resource }: { cluster: Cluster; resource: Resource }) {
  const sum = useMemo(() => totals(cluster.nodes, resource), [cluster, resource])
  const past = usePolled('history', api.history, 10_000)
  const name = resource === 'cpu' ? 'CPU' : 'Memory'
  const unmeasured = sum.nodes - sum.measuredNodes
  const measured = sum.measuredAllocatable > 0 ? sum.measured / sum.measuredAllocatable : null
  const will = sum.expectedAllocatable > 0 ? sum.expected / sum.expectedAllocatable : null
  const problems = [
    ...(sum.closed > 0 ? [`${grouped(sum.closed)} closed by load`] : []),
    ...(sum.away > 0 ? [`${grouped(sum.away)} not ready or cordoned`] : []),
    ...(sum.stale > 0 ? [`${grouped(sum.stale)} without fresh data`] : []),
  ]
  return (
    <>
      <dl class="tiles">
        <Tile name="Nodes" note={problems.length === 0 ? 'all open to pods, with fresh data' : problems.join(' · ')}>
          {grouped(sum.nodes)}
        </Tile>
        <Tile name="Over the line" note={sum.over === 0 ? 'every node is below it' : 'more load goes elsewhere'} bad={sum.over > 0}>
          {grouped(sum.over)}
        </Tile>
        <Tile name={`${name} measured`} note={unmeasured > 0 ? `without ${plural(unmeasured, 'node')} nobody measured` : `${amount(resource, sum.measured)} of ${amount(resource, sum.allocatable)}`}>
          {percent(measured)}
        </Tile>
        <Tile name="With what is arriving" note={sum.line === null ? 'no line is drawn' : `the lines allow ${percent(sum.allocatable > 0 ? sum.line / sum.allocatable : null)}`}>
          {percent(will)}
        </Tile>
        <Tile name={`${name} requested`} note={`${amount(resource, sum.requested)} of ${amount(resource, sum.allocatable)}`}>
          {percent(sum.allocatable > 0 ? sum.requested / sum.allocatable : null)}
        </Tile>
        <Tile name="Pods waiting" note={cluster.waitingPods === 0 ? 'every pod has a node' : <a href="#/decisions?only=unplaced">see why</a>} bad={cluster.waitingPods > 0}>
          {grouped(cluster.waitingPods)}
        </Tile>
      </dl>
      <div class="charts">
        {past.data === null ? (
          past.failing === null ? null : <Missing what="The last hour is" failing={past.failing} />
        ) : (
          <Past history={past.data} resource={resource} line={cluster.targets[resource] ?? null} />
        )}
        <Distribution cluster={cluster} resource={resource} />
      </div>
    </>
  )
}

function Past({ history, resource, line }: { history: History; resource: Resource; line: number | null }) {
  const shares = history[resource]
  const span = { stepSeconds: history.stepSeconds, end: history.end }
  return (
    <>
      <Chart
        title={`${resource === 'cpu' ? 'CPU' : 'Memory'} of the whole cluster, last hour`}
        curves={[
          { name: 'measured', values: shares.measured, look: 'used' },
          { name: 'with arriving', values: shares.expected, look: 'expected' },
          { name: 'requested', values: shares.requested, look: 'requested' },
          { name: 'fullest node', values: shares.worst, look: 'worst' },
        ]}
        line={line}
        top={1}
        format={percent}
        {...span}
      />
      <Chart
        title="Counts, last hour"
        curves={[
          { name: `nodes over the ${resource === 'cpu' ? 'CPU' : 'memory'} line`, values: shares.overLine, look: 'worst' },
          { name: 'nodes closed by load', values: history.closed, look: 'expected' },
          { name: 'pods waiting', values: history.waiting, look: 'used' },
        ]}
        top={4}
        format={(value) => (value === null || value === undefined ? '–' : figure(value))}
        {...span}
      />
    </>
  )
}

const BINS = 20

/** How many nodes are how full: the shape of the cluster at a glance. */
function Distribution({ cluster, resource }: { cluster: Cluster; resource: Resource }) {
  const { bins, unknown } = useMemo(() => histogram(cluster.nodes, resource, BINS), [cluster, resource])
  const most = Math.max(1, ...bins.map((bin) => bin.within + bin.over))
  const over = bins.reduce((sum, bin) => sum + bin.over, 0)
  const line = cluster.targets[resource]
  const fullest = bins.reduce((best, bin) => (bin.within + bin.over > best.within + best.over ? bin : best))
  const label = `Nodes by ${resource === 'cpu' ? 'CPU' : 'memory'} load: most are between ${percent(fullest.from)} and ${percent(fullest.from + 1 / BINS)}, ${over} are over their line, of ${unknown} nothing is known`
  const [width, height] = [400, 132]
  const y = (count: number) => height - (count === 0 ? 0 : Math.max(2, (count / most) * (height - 14)))
  return (
    <figure class="chart">
      <figcaption><span class="what">How many nodes are how full</span><span class="when">now</span></figcaption>
      <svg class="histogram" viewBox={`0 0 ${width} ${height + 18}`} role="img" aria-label={label}>
        {bins.map((bin, at) => {
          const left = (at * width) / BINS + 1
          const [low, high] = [y(bin.within), y(bin.within + bin.over)]
          return (
            <g key={at}>
              <rect class="within" x={left} y={low} width={width / BINS - 2} height={height - low} />
              {bin.over > 0 && <rect class="above" x={left} y={high} width={width / BINS - 2} height={Math.max(2, low - high)} />}
              {bin.within + bin.over > 0 && (most < 100 || bin === fullest || bin.over > 0) && <text class="tick" text-anchor="middle" x={left + width / BINS / 2 - 1} y={high - 3}>{grouped(bin.within + bin.over)}</text>}
            </g>
          )
        })}
        <path class="grid" d={`M0 ${height}H${width}`} />
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <text key={part} class="tick" text-anchor={part === 0 ? 'start' : part === 1 ? 'end' : 'middle'} x={part * width} y={height + 13}>{percent(part)}</text>
        ))}
        {line !== null && line !== undefined && <path class="mark" d={`M${line * width} 0V${height}`} />}
      </svg>
      <ul class="legend">
        <li><span class="swatch used" /> nodes below their line</li>
        <li><span class="swatch above" /> over it <b>{grouped(over)}</b></li>
        {unknown > 0 && <li>not measured <b>{grouped(unknown)}</b></li>}
      </ul>
    </figure>
  )
}
