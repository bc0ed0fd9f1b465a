// What the views look at: polls that are shared, what happened, and the time as the program has it.

import { useEffect, useReducer, useState } from 'preact/hooks'
import * as api from './api.ts'
import { Buffer, PAGE, follow } from './happenings.ts'
import { Poll, Refused, type Polled, type World } from './poll.ts'

const TIMEOUT = 15_000

const world: World = {
  now: () => Date.now(),
  after: (ms, what) => setTimeout(what, ms),
  cancel: (timer) => clearTimeout(timer as number | undefined),
  isVisible: () => document.visibilityState === 'visible',
}

/** Asks the program; the address is relative, so that the page works behind a prefix, too. */
export async function get<T>(path: string, decode: (value: unknown) => T, signal: AbortSignal): Promise<T> {
  let response: Response
  try {
    response = await fetch(`api/v1/${path}`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
      headers: { accept: 'application/json' },
      cache: 'no-store',
    })
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError'
    throw new Refused(0, late ? `no answer within ${TIMEOUT / 1000} s` : 'the program cannot be reached')
  }
  const body: unknown = await response.json().catch(() => null)
  if (!response.ok) {
    const said = typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : response.statusText
    throw new Refused(response.status, said === '' ? `status ${response.status}` : said)
  }
  return decode(body)
}

const empty = { data: null, at: null, failing: null }

interface Shared {
  poll: Poll<unknown>
  users: Map<object, { every: number; changed: () => void }>
}

/** By path. Those nobody uses stop, and are forgotten when there are many. */
const shared = new Map<string, Shared>()
const MOST_SHARED = 24

function poll(path: string, decode: (value: unknown) => unknown, every: number): Shared {
  let found = shared.get(path)
  if (found === undefined) {
    const users: Shared['users'] = new Map()
    const tell = () => users.forEach((user) => user.changed())
    found = { poll: new Poll(world, every, (signal) => get(path, decode, signal), tell), users }
    shared.set(path, found)
    for (const [old, { users }] of shared) {
      if (shared.size <= MOST_SHARED) break
      if (users.size === 0 && old !== path) shared.delete(old)
    }
  }
  return found
}

/** What is at a path, asked for every so many milliseconds; the last known picture comes at once. */
export function usePolled<T>(path: string, decode: (value: unknown) => T, every: number): Polled<T> {
  const [, changed] = useReducer((n: number, _: void) => n + 1, 0)
  useEffect(() => {
    const me = {}
    const { poll: mine, users } = poll(path, decode, every)
    const pace = () => mine.pace(Math.min(...[...users.values()].map((user) => user.every)))
    users.set(me, { every, changed: () => changed() })
    pace()
    mine.start()
    return () => {
      users.delete(me)
      if (users.size === 0) mine.stop()
      else pace()
    }
  }, [path, every])
  return (shared.get(path)?.poll.state ?? empty) as Polled<T>
}

export const buffer = new Buffer()
const listeners = new Set<() => void>()
const happened = new Poll<number>(
  world,
  2000,
  async (signal) => {
    await follow(buffer, (since) => get(`happenings?since=${since}&limit=${PAGE}`, api.happenings, signal))
    return buffer.version
  },
  () => listeners.forEach((listener) => listener()),
)

/** What happened; the view is drawn anew when more did. */
export function useHappenings(): { buffer: Buffer; version: number; polled: Polled<number> } {
  const [, changed] = useReducer((n: number, _: void) => n + 1, 0)
  useEffect(() => {
    const listener = () => changed()
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [])
  return { buffer, version: buffer.version, polled: happened.state }
}

export function begin(): void {
  happened.start()
  document.addEventListener('visibilitychange', () => {
    happened.seen()
    shared.forEach((one) => one.poll.seen())
  })
  window.addEventListener('online', hurry)
}

/** Ask everything now. */
export function hurry(): void {
  happened.hurry()
  shared.forEach((one) => one.users.size > 0 && one.poll.hurry())
}

/** The program's clock is what its times are compared with; ours may be wrong. */
let ahead = 0
export function told(at: string, came: number | null): void {
  const time = Date.parse(at)
  if (!Number.isNaN(time) && came !== null) ahead = time - came
}
export const programNow = () => Date.now() + ahead

/** Draws anew every so often, for what grows by itself. Not while nobody looks. */
export function useTick(ms: number): void {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => world.isVisible() && tick((n) => n + 1), ms)
    return () => clearInterval(timer)
  }, [ms])
}
