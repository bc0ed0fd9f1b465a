// What the program answers. CPU in cores, memory in bytes; `null` is not known, and never shown as 0.

export type Resource = 'cpu' | 'memory'
export type Basis = 'measured' | 'late' | 'annotation' | 'estimates' | 'nothing'
export type Closed = 'threshold' | 'unknown' | 'cooling'

export interface Amount {
  allocatable: number | null
  requested: number | null
  measured: number | null
  arriving: number | null
  departing: number | null
  line: number | null
  ageSeconds: number | null
  basis: Basis
}

export interface NodeRow {
  name: string
  ready: boolean
  cordoned: boolean
  closed: Closed | null
  coolingUntil: string | null
  hotValue: number | null
  score: number | null
  pods: number
  pendingPods: number
  cpu: Amount
  memory: Amount
}

export interface Source {
  name: string
  ageSeconds: number | null
  problem: string | null
}

export interface Cluster {
  cluster: string
  at: string
  ready: boolean
  sources: Source[]
  targets: Record<Resource, number | null>
  waitingPods: number
  nodes: NodeRow[]
}

export interface Term {
  metric: string
  value: number | null
  limit: number | null
  weight: number | null
  ageSeconds: number | null
  source: string | null
  reason: string | null
}

export interface PodOfNode {
  pod: string
  uid: string
  priority: number
  qos?: string | null
  workload: string | null
  arriving: boolean
  cpu: { requested: number | null; measured: number | null }
  memory: { requested: number | null; measured: number | null }
}

export type Series = (number | null)[]

export interface NodeDetail {
  node: NodeRow
  terms: Term[]
  reasons: string[]
  warnings: string[]
  pods: PodOfNode[]
  history: { stepSeconds: number; end: string; cpu: Series; memory: Series } | null
  happenings: Happening[]
  /** What its agent sees; not there where there is no way to it. */
  protection?: Protection | null
}

export interface Protection {
  /** Who knew what it is worked out from. */
  by: 'agent' | 'metrics'
  at: string
  rules: RuleLine[]
  orders: { metric: string; pods: Turn[] }[]
  acts: MeasuredAct[]
}

export interface RuleLine {
  rule: string
  metric: string
  unit: string
  line: number
  used: number | null
  action: string
  preview: boolean
  /** null: only its agent knows. */
  phase: string | null
  gap: number | null
  gapUnit: string
}

export interface Turn {
  pod: string
  protected: string | null
  candidate: boolean | null
}

export interface MeasuredAct {
  at: string
  act: 'throttled' | 'restored' | 'evicted'
  pod: string
  container: string | null
  rule: string
  resource: string
  predicted: number
  measured: number | null
  pending: boolean
}

export type Group = 'decision' | 'protection' | 'rebalance' | 'data' | 'other'

export interface Happening {
  seq: number
  at: string
  type: string
  reason: string
  kind: string
  about: string
  node: string | null
  from: string
  group: Group
  text: string
  count: number
}

export interface Happenings {
  /** Who numbers them: another one begins anew. */
  epoch?: string
  next: number
  /** Why what happens is not known. */
  problem?: string | null
  dropped: boolean
  items: Happening[]
}

export interface History {
  stepSeconds: number
  end: string
  cpu: Shares
  memory: Shares
  /** Nodes that take no pods because of load. */
  closed: Series
  waiting: Series
}

export interface Shares {
  measured: Series
  requested: Series
  expected: Series
  worst: Series
  /** Nodes over their line for it. */
  overLine: Series
}

export interface LoadLine {
  measured: string | null
  pending: string | null
  incoming: string | null
  allocatable: string | null
  target: number | null
  pendingPods?: unknown[] | null
  sources?: Record<string, unknown> | null
  basis?: string | null
  departed?: string | null
  /** The most that may be used; said of what was decided. */
  limit?: string | null
}

export interface Verdict {
  node: string
  fits: boolean
  reasons: string[]
  score: number | null
  scores: Record<string, number | { base: number; hotPenalty: number; final: number } | null> | null
  hotValue: number | null
  terms: Term[] | null
  load: Partial<Record<Resource, LoadLine | null>> | null
  counterfactual: string | null
  warnings: string[] | null
}

export interface Decision {
  at: string
  scheduler: string
  node: string | null
  message: string | null
  feasibleNodes: number | null
  refusedNodes: Record<string, number> | null
  /** How good its node was, 0 to 100. */
  score?: number | null
  next?: { node: string; score: number } | null
  load?: Partial<Record<Resource, LoadLine | null>> | null
  /** One node that each rule refused. */
  refusals?: { rule: string; node: string; reason: string | null }[] | null
}

export interface Move {
  at: string
  pod: string
  from: string
  to: string
  message: string
}

export interface Recommendation {
  name: string
  message: string | null
  updated: string | null
  ageSeconds: number | null
}

export interface PodExplanation {
  pod: string
  node: string | null
  decisions: Decision[]
  moves?: Move[] | null
  now: {
    at: string
    anotherLikeIt: boolean
    node: string | null
    message: string | null
    recommendation?: Recommendation | null
    moreNodes: number
    nodes: Verdict[]
  } | null
}

/** An answer that is not what was agreed on: said where it is seen, instead of breaking the page somewhere else. */
export class Unexpected extends Error {}

const has = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined

/** The answer, if the named fields are lists and the others are there. */
export function shaped<T>(value: unknown, lists: string[], fields: string[]): T {
  const missing = [
    ...lists.filter((key) => !Array.isArray(has(value, key))),
    ...fields.filter((key) => has(value, key) === undefined),
  ]
  if (missing.length > 0) throw new Unexpected(`the answer has no ${missing.join(', no ')}`)
  return value as T
}

export const cluster = (value: unknown) => shaped<Cluster>(value, ['nodes', 'sources'], ['at', 'targets'])
export const nodeDetail = (value: unknown) =>
  shaped<NodeDetail>(value, ['terms', 'reasons', 'warnings', 'pods', 'happenings'], ['node'])
export const happenings = (value: unknown) => shaped<Happenings>(value, ['items'], ['next'])
export const history = (value: unknown) => shaped<History>(value, ['closed', 'waiting'], ['cpu', 'memory', 'end'])
export const podExplanation = (value: unknown) => shaped<PodExplanation>(value, ['decisions'], ['pod', 'now'])
