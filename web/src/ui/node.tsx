// One node: how loaded, why it takes pods or does not, who would have to go first.

import { useMemo } from 'preact/hooks'
import * as api from '../api.ts'
import type { Amount, NodeDetail, NodeRow, Protection, Resource, Turn } from '../api.ts'
import { amount as text, amountOf, clock, figure, percent, plural, UNKNOWN, words } from '../format.ts'
import { merged, nodeOf, placements } from '../happenings.ts'
import { expected, inTurn, pressing, room } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toPod } from '../route.ts'
import { useHappenings, usePolled } from '../store.ts'
import { Acts } from './acts.tsx'
import { AmountBar, Legend } from './bar.tsx'
import { Age, Badge, Choice, closedBecause, Icon, Missing, NodeBadge, Title, Waiting, Warnings } from './bits.tsx'
import { Chart } from './chart.tsx'
import { MeasuredActs, Rules } from './lines.tsx'
import { Terms } from './terms.tsx'

export function NodeView({ name, targets }: { name: string; targets: Record<Resource, number | null> | null }) {
  const { data, failing } = usePolled(`nodes/${encodeURIComponent(name)}`, api.nodeDetail, 2000)
  return (
    <>
      <p class="up"><a href="#/">← All nodes</a></p>
      <Title>{name}</Title>
      {data !== null ? <Detail detail={data} targets={targets} /> : failing === null ? (
        <Waiting what="this node" />
      ) : failing.status === 404 ? (
        <p class="note">There is no node of this name, or no longer: {failing.message}</p>
      ) : (
        <Missing what="This node is" failing={failing} />
      )}
    </>
  )
}

const MOST_ACTS = 60

const BASES: Record<string, string> = {
  measured: 'measured',
  late: 'measured, but late: everything placed since is added',
  annotation: 'taken from the five-minute annotation, because nothing was measured',
  estimates: 'added up from what its pods are expected to use, because nothing was measured',
  nothing: 'not known',
}

function verdict(node: NodeRow, reasons: readonly string[]): string {
  if (!node.ready) return 'It is not ready: no pods are placed here.'
  if (node.cordoned) return 'It is cordoned: no pods are placed here until somebody allows it again.'
  const closed = closedBecause(node)
  if (closed !== null) return closed
  if (reasons.length > 0) return 'It takes no more pods now:'
  const least = (['cpu', 'memory'] as const).filter((resource) => (room(node[resource]) ?? 0) < 0)
  if (least.length > 0) return 'It is over its line: pods that need more of it go elsewhere.'
  return 'It takes pods, as long as they stay below the line:'
}

function Detail({ detail, targets }: { detail: NodeDetail; targets: Record<Resource, number | null> | null }) {
  const { node, terms, reasons, warnings, pods, history } = detail
  const { buffer, version } = useHappenings()
  // What was done to its pods does not always say where: their places are known from when they were placed.
  const happenings = useMemo(() => {
    const placed = placements(buffer.of('decision'))
    return merged(detail.happenings, buffer.of('protection', 'rebalance').filter((item) => nodeOf(item, placed) === node.name)).slice(0, MOST_ACTS)
  }, [detail, version])
  const lines = (['cpu', 'memory'] as const).map((resource) => {
    const { line, allocatable } = node[resource]
    return line === null || allocatable === null || allocatable === 0 ? (targets?.[resource] ?? null) : line / allocatable
  })
  return (
    <>
      <p class="lead">
        <NodeBadge node={node} resource={pressing(node)} /> {verdict(node, reasons)}
      </p>
      {reasons.length > 0 && (
        <ul class="reasons">
          {reasons.map((reason) => <li key={reason}><Icon of="no" /> {reason}</li>)}
        </ul>
      )}
      <Warnings of={warnings} />
      <section class="card" aria-labelledby="now">
        <h2 id="now">Now</h2>
        <Legend />
        <Sum resource="cpu" amount={node.cpu} />
        <Sum resource="memory" amount={node.memory} />
        <p class="facts">
          <span>{plural(node.pods, 'pod')}, {node.pendingPods} of them arriving</span>
          <span>load score {node.score === null ? UNKNOWN : <b>{node.score} of 100</b>}</span>
          <span title="Grows with every pod placed here in the last minutes; makes other nodes look better">hot value {node.hotValue === null ? UNKNOWN : <b>{figure(node.hotValue)}</b>}</span>
          {node.coolingUntil !== null && <span>cooling until <b>{clock(node.coolingUntil)}</b></span>}
        </p>
      </section>
      <div class="pair">
        <section class="card" aria-labelledby="metrics">
          <h2 id="metrics">What it is judged by</h2>
          <p class="muted">One value above its limit keeps new pods away; the weights make the load score.</p>
          <Terms terms={terms} caption={`Load metrics of ${node.name}`} />
        </section>
        {history !== null && (
          <section class="card" aria-label="Last hour">
            <Chart
              title="Measured, last hour"
              curves={[
                { name: 'CPU', values: history.cpu, look: 'used' },
                { name: 'memory', values: history.memory, look: 'worst' },
              ]}
              line={lines[0] ?? null}
              lineName={Math.abs((lines[0] ?? 0) - (lines[1] ?? 0)) < 0.0005 ? 'the line' : 'the line for CPU'}
              top={1}
              format={percent}
              stepSeconds={history.stepSeconds}
              end={history.end}
            />
          </section>
        )}
      </div>
      {detail.protection !== undefined && detail.protection !== null && <Rules of={detail.protection} name={node.name} />}
      <section class="card" aria-labelledby="pods">
        <h2 id="pods">Pods <span class="muted">{pods.length}</span></h2>
        {pods.length === 0 ? <p class="note">No pods run here.</p> : <Pods of={pods} name={node.name} protection={detail.protection ?? null} />}
      </section>
      {(detail.protection?.acts.length ?? 0) > 0 && <MeasuredActs of={detail.protection?.acts ?? []} />}
      <section class="card" aria-labelledby="acts">
        <h2 id="acts">What happened here</h2>
        {happenings.length === 0 ? <p class="note">Nothing of late.</p> : <Acts items={happenings} without={node.name} />}
      </section>
    </>
  )
}

/** The bar, and its arithmetic written out. */
function Sum({ resource, amount }: { resource: Resource; amount: Amount }) {
  const will = expected(amount)
  const left = room(amount)
  return (
    <div class="sum">
      <h3>{resource === 'cpu' ? 'CPU' : 'Memory'}</h3>
      <AmountBar resource={resource} amount={amount} big />
      <p>
        {amount.measured !== null ? <><b>{text(resource, amount.measured)}</b> measured</> : will === null ? 'not measured' : <><b>{text(resource, will)}</b> expected of its pods, nothing is measured</>}
        {amount.measured !== null && (amount.arriving ?? 0) > 0 && <> + <b>{text(resource, amount.arriving)}</b> arriving</>}
        {amount.measured !== null && (amount.departing ?? 0) > 0 && <> − <b>{text(resource, amount.departing)}</b> leaving</>}
        {amount.measured !== null && ((amount.arriving ?? 0) > 0 || (amount.departing ?? 0) > 0) && <> = <b>{text(resource, will)}</b></>}
        {amount.line === null ? <>; no line is drawn</> : <>; the line is at <b>{text(resource, amount.line)}</b> of {amountOf(resource, amount.allocatable)}</>}
        {left !== null && (left < 0 ? <span class="bad"> <Icon of="up" /> {text(resource, -left)} over</span> : <>, so <b>{text(resource, left)}</b> more may come</>)}
        <small>
          requested {text(resource, amount.requested)} · {BASES[amount.basis] ?? amount.basis}
          {amount.ageSeconds !== null && <> · <Age seconds={amount.ageSeconds} /> old</>}
        </small>
      </p>
    </div>
  )
}

/** The pods, first the one that would be acted on first: by its agent's own order, where it is known. */
function Pods({ of, name, protection }: { of: NodeDetail['pods']; name: string; protection: Protection | null }) {
  const [by, setBy] = useParam('order', '')
  const orders = protection?.orders ?? []
  const order = orders.find(({ metric }) => metric === by) ?? orders[0]
  const { turns, rest } = inTurn(of, order?.pods ?? null)
  return (
    <>
      {order === undefined ? (
        <p class="muted">The least important first, and of those alike the one that uses most. No rule of protection is known for this node, so nobody is acted on.</p>
      ) : (
        <div class="bench inner">
          <p class="muted">In the order in which its agent would act on them: if <code>{order.metric}</code> passes its line, the first of these is slowed down or sent away first.</p>
          {orders.length > 1 && <Choice label="Metric that decides the order" value={order.metric} of={orders.map(({ metric }) => [metric, metric] as const)} set={setBy} />}
        </div>
      )}
      <PodTable of={[...turns, ...rest]} numbered={turns.length} turns={order?.pods ?? null} name={name} />
    </>
  )
}

const PodTable = ({ of, name, numbered, turns }: { of: NodeDetail['pods']; name: string; numbered: number; turns: readonly Turn[] | null }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={`Pods of ${name}`}>
    <table>
      <thead>
        <tr>
          <th scope="col" class="num">Turn</th>
          <th scope="col">Pod</th>
          <th scope="col" class="num">CPU used</th>
          <th scope="col" class="num">requested</th>
          <th scope="col" class="num">Memory used</th>
          <th scope="col" class="num">requested</th>
          <th scope="col" class="num">Priority</th>
          <th scope="col">Made by</th>
        </tr>
      </thead>
      <tbody>
        {of.map((pod, at) => (
          <tr key={pod.uid}>
            <td class="num muted">{at < numbered ? at + 1 : UNKNOWN}</td>
            <th scope="row">
              <a href={toPod(pod.pod)}>{pod.pod}</a> {pod.arriving && <Badge of="dot" tone="calm">arriving</Badge>}
              <Spared of={turns?.find((turn) => turn.pod === pod.pod)} />
            </th>
            <td class="num">{text('cpu', pod.cpu.measured)}</td>
            <td class="num muted">{text('cpu', pod.cpu.requested)}</td>
            <td class="num">{text('memory', pod.memory.measured)}</td>
            <td class="num muted">{text('memory', pod.memory.requested)}</td>
            <td class="num">{pod.priority}</td>
            <td>{pod.workload ?? UNKNOWN}{pod.qos !== undefined && pod.qos !== null && <span class="muted"> · {pod.qos}</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** Why it is left alone, whatever its turn. */
const Spared = ({ of }: { of: Turn | undefined }) =>
  of === undefined ? null : of.protected !== null ? <Badge of="no" tone="calm">left alone: {words(of.protected)}</Badge> : of.candidate === false ? <Badge of="no" tone="calm">no rule touches it</Badge> : null
