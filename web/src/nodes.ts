// What does a list of nodes say? Shares, room, order and counts; everything about one resource at a time.

import type { Amount, NodeRow, Resource, Turn } from './api.ts'

export type Sort = 'load' | 'room' | 'name' | 'age'
export type State = 'over' | 'closed' | 'away' | 'unknown' | 'ok'

/**
 * What will be used when everything assigned has arrived and everything gone has left.
 * Where nothing was measured but pods were added up instead, what arrives is all there is to go by.
 */
export function expected(amount: Amount): number | null {
  const { measured, arriving, departing } = amount
  if (measured === null) return amount.basis === 'estimates' ? arriving : null
  return Math.max(0, measured + (arriving ?? 0) - (departing ?? 0))
}

export const share = (value: number | null, of: number | null): number | null =>
  value === null || of === null || of <= 0 ? null : value / of

export const expectedShare = (amount: Amount) => share(expected(amount), amount.allocatable)

/** How much more may come before the line is passed; below 0: by how much it is passed. */
export function room(amount: Amount): number | null {
  const will = expected(amount)
  return will === null || amount.line === null ? null : amount.line - will
}

export const isOver = (amount: Amount) => (room(amount) ?? 0) < 0

/** Which resource is nearer to its line, or further beyond it; of those alike CPU. */
export function pressing(node: NodeRow): Resource {
  const left = (resource: Resource) => share(room(node[resource]), node[resource].allocatable) ?? Infinity
  return left('memory') < left('cpu') ? 'memory' : 'cpu'
}

/** Which sample is fresh, the program says by its basis; one older than this never is, however long its window. */
export const FRESH_SECONDS = 300

export const isStale = (amount: Amount) =>
  amount.basis !== 'measured' || amount.ageSeconds === null || amount.ageSeconds > FRESH_SECONDS

/** In what state is a node, for this resource? The first that holds. */
export function state(node: NodeRow, resource: Resource): State {
  const amount = node[resource]
  if (!node.ready || node.cordoned) return 'away'
  if (isOver(amount)) return 'over'
  if (node.closed !== null) return 'closed'
  if (expected(amount) === null) return 'unknown'
  return 'ok'
}

const names = new Intl.Collator('en', { numeric: true })
export const byName = (a: { name: string }, b: { name: string }) => names.compare(a.name, b.name)

/** What is compared, smallest first; what is not known comes last, except where its absence is what is looked for. */
function key(node: NodeRow, resource: Resource, sort: Sort): number {
  const amount = node[resource]
  switch (sort) {
    case 'load': return -(expectedShare(amount) ?? -1)
    case 'room': return share(room(amount), amount.allocatable) ?? Infinity
    case 'age': return -(amount.ageSeconds ?? Infinity)
    case 'name': return 0
  }
}

let ranks: { names: string[]; rank: number[] } = { names: [], rank: [] }

/** The place of each by name. Comparing names is slow, and they hardly ever change: done once for the same nodes. */
function ranked(nodes: readonly NodeRow[]): number[] {
  const same = nodes.length === ranks.names.length && nodes.every((node, at) => node.name === ranks.names[at])
  if (!same) {
    const order = nodes.map((node, at) => ({ name: node.name, at })).sort(byName)
    const rank = new Array<number>(nodes.length).fill(0)
    order.forEach(({ at }, place) => (rank[at] = place))
    ranks = { names: nodes.map((node) => node.name), rank }
  }
  return ranks.rank
}

/** In the order asked for; of nodes alike, by name. */
export function sorted(nodes: readonly NodeRow[], resource: Resource, sort: Sort): NodeRow[] {
  const rank = ranked(nodes)
  const keyed = nodes.map((node, at) => ({ node, rank: rank[at] ?? 0, key: key(node, resource, sort) }))
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.rank - b.rank))
  return keyed.map(({ node }) => node)
}

/** Those whose name has all the words. */
export function matching<T>(items: readonly T[], filter: string, text: (item: T) => string): readonly T[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter((word) => word !== '')
  if (wanted.length === 0) return items
  return items.filter((item) => {
    const within = text(item).toLowerCase()
    return wanted.every((word) => within.includes(word))
  })
}

/** The newest values in an order decided before: rows do not jump under a hand. New ones come last. */
export function inOrder<T extends { name: string }>(items: readonly T[], order: readonly string[]): T[] {
  const left = new Map(items.map((item) => [item.name, item]))
  const out: T[] = []
  for (const name of order) {
    const item = left.get(name)
    if (item !== undefined) {
      out.push(item)
      left.delete(name)
    }
  }
  return [...out, ...left.values()]
}

export interface Totals {
  nodes: number
  allocatable: number
  requested: number
  /** Of those nodes that were measured, and how much they have. */
  measured: number
  measuredNodes: number
  measuredAllocatable: number
  /** Of those nodes of which it is known, and how much they have. */
  expected: number
  expectedAllocatable: number
  line: number | null
  over: number
  closed: number
  stale: number
  away: number
  hot: number
}

/** Pods in the order of their turns; who is left alone, and who has none, comes after. Without an order, all as they came. */
export function inTurn<P extends { pod: string }>(pods: readonly P[], turns: readonly Turn[] | null): { turns: P[]; rest: P[] } {
  if (turns === null) return { turns: [...pods], rest: [] }
  const byName = new Map(pods.map((pod) => [pod.pod, pod]))
  const first = turns.flatMap(({ pod, protected: why, candidate }) => (why !== null || candidate === false ? [] : (byName.get(pod) ?? [])))
  const known = new Set(first)
  return { turns: first, rest: pods.filter((pod) => !known.has(pod)) }
}

export function totals(nodes: readonly NodeRow[], resource: Resource): Totals {
  const sum: Totals = {
    nodes: nodes.length, allocatable: 0, requested: 0, measured: 0, measuredNodes: 0, measuredAllocatable: 0,
    expected: 0, expectedAllocatable: 0, line: null, over: 0, closed: 0, stale: 0, away: 0, hot: 0,
  }
  for (const node of nodes) {
    const amount = node[resource]
    sum.allocatable += amount.allocatable ?? 0
    sum.requested += amount.requested ?? 0
    const will = expected(amount)
    if (will !== null) {
      sum.expected += will
      sum.expectedAllocatable += amount.allocatable ?? 0
    }
    if (amount.measured !== null) {
      sum.measured += amount.measured
      sum.measuredNodes += 1
      sum.measuredAllocatable += amount.allocatable ?? 0
    }
    if (amount.line !== null) sum.line = (sum.line ?? 0) + amount.line
    if (isOver(amount)) sum.over += 1
    if (node.closed !== null) sum.closed += 1
    if (isStale(amount)) sum.stale += 1
    if (!node.ready || node.cordoned) sum.away += 1
    if ((node.hotValue ?? 0) > 0) sum.hot += 1
  }
  return sum
}

export interface Bin {
  /** Nodes whose expected share is in [from, from + width). The last one has everything above. */
  from: number
  within: number
  over: number
}

/** How many nodes are how loaded. */
export function histogram(nodes: readonly NodeRow[], resource: Resource, bins: number): { bins: Bin[]; unknown: number } {
  const out = Array.from({ length: bins }, (_, at) => ({ from: at / bins, within: 0, over: 0 }))
  let unknown = 0
  for (const node of nodes) {
    const part = expectedShare(node[resource])
    if (part === null) unknown += 1
    else {
      const bin = out[Math.min(bins - 1, Math.max(0, Math.floor(part * bins + 1e-9)))]
      if (bin !== undefined) bin[isOver(node[resource]) ? 'over' : 'within'] += 1
    }
  }
  return { bins: out, unknown }
}
