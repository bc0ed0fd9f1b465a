// What the program answers about a fleet; `null` is not known, and never shown as 0.

import { shaped } from './api.ts'

export interface FleetAmount {
  allocatable: number | null
  requested: number | null
  measured: number | null
}

export interface FleetCluster {
  knownTo: string[]
  leaving: boolean
  taints: string[]
  ageSeconds: number | null
  cpu: FleetAmount
  memory: FleetAmount
}

export interface FleetApi {
  name: string
  group: string
  there: boolean
  kinds: { kind: string; count: number; problem: string | null }[]
}

export interface FleetPlacement {
  placement: string
  selected: string[]
  satisfied: boolean | null
  message: string | null
}

export interface Share {
  name: string
  replicas?: number | null
}

export interface FleetBinding {
  binding: string
  kind: string
  scheduler: string
  replicas: number | null
  clusters: Share[]
  scheduled: boolean | null
  reason: string | null
  message: string | null
}

export interface Fleet {
  at: string
  problem: string | null
  apis: FleetApi[]
  clusters: Record<string, FleetCluster>
  placements: FleetPlacement[]
  morePlacements: number
  bindings: FleetBinding[]
  moreBindings: number
}

export interface Points {
  raw: number | null
  weight: number
  weighted: number
}

export interface Candidate {
  cluster: string
  filteredBy: string | null
  reason: string | null
  scores: Record<string, Points>
  total: number | null
  margin: number | null
  held: boolean
  load: { timestamp: string; ageSeconds: number; used: boolean } | null
}

export interface PlacementExplanation {
  placement: string
  at: string
  selected: string[]
  published: string[]
  unscheduled: number
  clusters: Candidate[]
  source: { source: 'static' | 'requested' | 'measured'; ageSeconds: number | null } | null
  margin: number | null
  warnings: string[]
}

export interface Estimate {
  by: string
  count: number | null
  problem?: string | null
  ageSeconds?: number | null
}

export interface Feasible {
  name: string
  score: number
  available: number
  confirmed: boolean
  estimates: Estimate[]
}

export interface Division {
  targets: Share[]
  feasible: Feasible[]
  filtered: { name: string; reason: string }[]
  result: { status: boolean; reason: string; message: string }
  shortfall: number
  warnings: string[]
}

export interface BindingExplanation {
  binding: string
  scheduler: string
  ours: boolean
  clusters: Share[]
  condition: { reason?: string; message?: string } | null
  decision: (Division & { at: string; why: string }) | null
  now: Partial<Division> & { at: string; why: string | null; wouldChange: boolean; would?: string[] | null }
}

/** Where a program has no fleet to show it says so by nothing at all. */
export const fleet = (value: unknown): Fleet | null =>
  value === null ? null : shaped<Fleet>(value, ['apis', 'placements', 'bindings'], ['at', 'clusters'])
export const placementExplanation = (value: unknown) => shaped<PlacementExplanation>(value, ['clusters', 'selected'], ['placement'])
export const bindingExplanation = (value: unknown) => shaped<BindingExplanation>(value, ['clusters'], ['binding', 'now'])

/** Clusters of a fleet by name, with how full each is of what is measured, or else requested. */
export function clusters(of: Fleet): [string, FleetCluster][] {
  return Object.entries(of.clusters).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Where a binding is, in a few words. */
export const where = (shares: readonly Share[]): string =>
  shares.length === 0 ? 'nowhere' : shares.map(({ name, replicas }) => (replicas === null || replicas === undefined ? name : `${name} ${replicas}`)).join(', ')

/** Why those clusters and not the next, in a sentence. */
export function whySelected(of: PlacementExplanation): string | null {
  const scored = of.clusters.filter((one) => one.total !== null)
  const first = scored.find((one) => one.cluster === of.selected[0])
  const next = scored.filter((one) => !of.selected.includes(one.cluster)).sort((a, b) => (b.total ?? 0) - (a.total ?? 0))[0]
  const last = scored.filter((one) => of.selected.includes(one.cluster)).sort((a, b) => (a.total ?? 0) - (b.total ?? 0))[0]
  if (first === undefined || last === undefined) return null
  if (next === undefined) return 'Every cluster that may be selected is.'
  if (of.selected.length === 1) return `It has the most points: ${first.total}; the next is ${next.cluster} with ${next.total}.`
  return `They have the most points: the last of them, ${last.cluster}, has ${last.total}; the next is ${next.cluster} with ${next.total}.`
}

/** What a bucket of points goes by, for people: `ResourceRatioCPU` as "resource ratio CPU". */
export const prioritizer = (name: string) =>
  name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/([A-Z]{2,})([A-Z][a-z])/g, '$1 $2').replace(/\b[A-Z][a-z]+\b/g, (word) => word.toLowerCase())

