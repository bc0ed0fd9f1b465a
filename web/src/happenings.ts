// What happened of late: as much of it as a page can hold, however much there is.

import type { Group, Happening, Happenings } from './api.ts'

/** How many of each group are kept. A flood of decisions pushes out none of the others. */
const MOST: Record<Group, number> = { decision: 5000, protection: 2000, rebalance: 2000, data: 500, other: 500 }
/** How many are asked for at once; of more, the newest come. */
export const PAGE = 1000

/** By the time, not by its text: "05Z" is before "05.3Z", and sorts after it. Parsed once for each. */
const times = new WeakMap<Happening, number>()
function time(item: Happening): number {
  let at = times.get(item)
  if (at === undefined) times.set(item, (at = Date.parse(item.at) || 0))
  return at
}
/** Parts of a second beyond thousandths, which dates do not hold: six digits as they are written. */
const fine = (item: Happening) => (/\.(\d+)/.exec(item.at)?.[1] ?? '').padEnd(9, '0')
function newest(a: Happening, b: Happening): number {
  const apart = time(b) - time(a)
  if (apart !== 0) return apart
  const [x, y] = [fine(a), fine(b)]
  return x < y ? 1 : x > y ? -1 : b.seq - a.seq
}

export class Buffer {
  /** From where to go on. */
  next = 0
  /** How many were passed over, as far as their numbers tell. */
  skipped = 0
  /** Grows with every change. */
  version = 0
  /** Why nothing new is known. */
  problem: string | null = null
  private epoch: string | null = null
  private last = 0
  private kept: Record<Group, Happening[]> = { decision: [], protection: [], rebalance: [], data: [], other: [] }

  /** Takes in what came after a number. */
  take(page: Happenings, since: number): void {
    const epoch = page.epoch ?? this.epoch
    const isOther = this.epoch !== null && epoch !== this.epoch
    this.epoch = epoch
    if (page.next < since || (isOther && since > 0)) {
      // Numbers only grow: this is another program than before.
      this.forget()
      return
    }
    const problem = page.problem ?? null
    if (problem !== this.problem) this.version += 1
    this.problem = problem
    const news = page.items.filter((item) => item.seq > this.last)
    const first = news[0]
    if (page.dropped && this.last > 0 && first !== undefined) this.skipped += Math.max(1, first.seq - this.last - 1)
    for (const item of news) {
      const list = this.kept[item.group] ?? this.kept.other
      list.push(item)
      this.last = item.seq
    }
    for (const group of Object.keys(MOST) as Group[]) {
      const list = this.kept[group]
      // Many at once, not one by one: what is cut off costs nothing per item.
      if (list.length > MOST[group] * 1.5) this.kept[group] = list.slice(-MOST[group])
    }
    this.next = page.next
    if (news.length > 0) this.version += 1
  }

  forget(): void {
    this.next = 0
    this.last = 0
    this.skipped = 0
    this.version += 1
    for (const group of Object.keys(MOST) as Group[]) this.kept[group] = []
  }

  /** Newest first, by when it happened: what was there before the program began has numbers in no order. */
  of(...groups: Group[]): Happening[] {
    const all = groups.flatMap((group) => this.kept[group].slice(-MOST[group]))
    return all.sort(newest)
  }
}

/** Reads on from where the buffer is. */
export async function follow(buffer: Buffer, ask: (since: number) => Promise<Happenings>): Promise<void> {
  const since = buffer.next
  buffer.take(await ask(since), since)
  if (since > 0 && buffer.next === 0) buffer.take(await ask(0), 0)
}

export type Act = 'slowed' | 'gone' | 'moved' | 'back' | 'stays' | 'line' | 'taint' | 'other'

/** What was done, by the reason of the event. */
export function act(item: Happening): Act {
  const { reason } = item
  if (/^LoadTaint/.test(reason)) return 'taint'
  // Of a node as a whole: a line was passed, or is not any more.
  if (/Triggered$|^Waterline/.test(reason)) return 'line'
  if (/Blocked$|NotRebalanced|Stays|Refused/.test(reason)) return 'stays'
  if (/Restore|^Returned/.test(reason)) return 'back'
  if (/^Throttled|Reclaimed/.test(reason)) return 'slowed'
  if (/^Evict/.test(reason)) return 'gone'
  if (/^Rebalanc/.test(reason)) return 'moved'
  return 'other'
}

export interface Done {
  act: Act
  /** Of whom it speaks: a pod, or the node itself. */
  pod: string | null
  item: Happening
}

export interface OfNode {
  /** Empty: nobody said which. */
  node: string
  newest: string
  done: Done[]
  /** Pods that were slowed down and not given back to since. */
  slowed: string[]
}

/**
 * What was done, by node, the newest first. Events about pods do not always say their node: where it was said when the pod
 * was placed, that one is taken. A move is told twice, on the pod and on the node it leaves: it is shown once.
 */
export function byNode(items: readonly Happening[], placed: ReadonlyMap<string, string>): OfNode[] {
  const groups = new Map<string, OfNode>()
  const said = new Set<string>()
  for (const item of items) {
    const kind = act(item)
    let pod = item.kind === 'Pod' ? item.about : null
    let text = item.text
    const named = /^([a-z0-9.-]+\/[a-z0-9.-]+) (.*)$/s.exec(text)
    if (pod === null && named !== null && item.group === 'rebalance') [pod, text] = [named[1] ?? null, named[2] ?? text]
    const node = nodeOf(item, placed) ?? ''
    if (pod !== null) {
      const same = `${pod} ${item.reason} ${Math.floor(Date.parse(item.at) / 2000)} ${text}`
      if (said.has(same)) continue
      said.add(same)
    }
    let group = groups.get(node)
    if (group === undefined) groups.set(node, (group = { node, newest: item.at, done: [], slowed: [] }))
    group.done.push({ act: kind, pod, item: text === item.text ? item : { ...item, text } })
  }
  for (const group of groups.values()) {
    const last = new Map<string, Act>()
    for (const { act, pod } of group.done) {
      if (pod !== null && ['slowed', 'gone', 'back', 'moved'].includes(act) && !last.has(pod)) last.set(pod, act)
    }
    group.slowed = [...last].filter(([, act]) => act === 'slowed').map(([pod]) => pod)
  }
  return [...groups.values()]
}

/** On which node it happened: as it says, or else where its pod was placed. */
export const nodeOf = (item: Happening, placed: ReadonlyMap<string, string>): string | null =>
  item.node ?? (item.kind === 'Node' ? item.about : (placed.get(item.about) ?? null))

/** Several lists as one, each item once, the newest first. */
export function merged(...lists: (readonly Happening[])[]): Happening[] {
  const all = new Map(lists.flat().map((item) => [item.seq, item]))
  return [...all.values()].sort(newest)
}

/** Where pods were placed, as far as it was told. */
export function placements(decisions: readonly Happening[]): Map<string, string> {
  const out = new Map<string, string>()
  for (const item of decisions) {
    if (item.reason === 'Scheduled' && item.node !== null && !out.has(item.about)) out.set(item.about, item.node)
  }
  return out
}
