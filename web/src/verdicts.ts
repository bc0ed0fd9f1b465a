// In which order are nodes told about a pod, and why was one of them chosen?

import type { Decision, Verdict } from './api.ts'
import { words } from './format.ts'

/** The chosen one first, then where the pod is, then those that fit by score, then the others by score. */
export function ranked(nodes: readonly Verdict[], chosen: string | null, here: string | null = null): Verdict[] {
  const rank = (one: Verdict) => (one.node === chosen && one.fits ? 0 : one.node === here ? 1 : one.fits ? 2 : 3)
  return [...nodes].sort((a, b) => rank(a) - rank(b) || (b.score ?? -1) - (a.score ?? -1) || (a.node < b.node ? -1 : 1))
}

/** What a rule says of a node it refuses. */
const REFUSALS: Record<string, string> = {
  line: 'would pass the line', resources: 'have too little that nobody requested', threshold: 'are over a load limit', unknownLoad: 'have an unknown load', cooling: 'are cooling',
  cordon: 'are cordoned', taints: 'have a taint', nodeAffinity: 'are not what it asks for', antiAffinity: 'have pods it avoids', existingAntiAffinity: 'have pods that avoid it', spread: 'have enough of its kind',
}

/** How many nodes refused it and why, in a sentence: "4 would pass the line, 2 are cordoned". */
export const refusals = (of: Readonly<Record<string, number>>): string =>
  Object.entries(of).filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a).map(([rule, count]) => `${count} ${REFUSALS[rule] ?? `refused it: ${words(rule)}`}`).join(', ')

/** Why the chosen one and not the next, in a sentence. */
export function whyChosen(nodes: readonly Verdict[], chosen: string): string | null {
  const fitting = ranked(nodes.filter((one) => one.fits), chosen)
  const [best, next] = fitting
  if (best === undefined || best.node !== chosen || best.score === null) return null
  if (next === undefined) return 'It is the only one of the nodes shown that can take it.'
  if (next.score === null) return null
  const alike = fitting.filter((one) => one.score === best.score).length
  if (alike > 1) return `It is one of ${alike} nodes that have the same, highest score, ${best.score}.`
  if (next.score > best.score) return null
  return `It has the highest score of those that can take it: ${best.score}; the next is ${next.node} with ${next.score}.`
}

/** Of what was decided, the newest first, that by which the pod is where it is; else the newest. */
export const decisive = (decisions: readonly Decision[], node: string | null): Decision | null =>
  decisions.find((one) => node !== null && one.node === node) ?? (node === null ? (decisions[0] ?? null) : null)

/** How good the chosen node was then, and the next, in a sentence; nothing where that was not kept. */
export function whyThen({ score, next, feasibleNodes }: Decision): string | null {
  if (score === null || score === undefined) return null
  if (next === null || next === undefined) return feasibleNodes === 1 ? `Score ${score}; no other node could take it.` : `Score ${score}.`
  if (next.score === score) return `Score ${score}, as ${next.node} had.`
  return `Score ${score}; next was ${next.node} with ${next.score}.`
}
