// Asks again and again, while somebody looks: at once when the page comes back, ever more seldom while nobody answers.

export interface Failing {
  /** The last time it answered, or else the first time it did not. */
  since: number
  message: string
  /** 0: no answer at all. */
  status: number
  tries: number
  /** When it is asked again. */
  again: number
}

export interface Polled<T> {
  data: T | null
  /** When the data came. */
  at: number | null
  failing: Failing | null
}

/** Says no, with the status of the answer; 0 where there was none. */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** What is outside; in tests, something else. */
export interface World {
  now(): number
  after(ms: number, what: () => void): unknown
  cancel(timer: unknown): void
  isVisible(): boolean
}

const FIRST_WAIT = 2000
const LONGEST_WAIT = 30_000
/** An answer that took long is asked for more seldom. */
const REST = 3

/** How long to wait after so many failures. */
export const backoff = (tries: number) => Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.max(0, tries - 1))

export class Poll<T> {
  state: Polled<T> = { data: null, at: null, failing: null }
  private timer: unknown = null
  private running: AbortController | null = null
  private active = false
  private readonly world: World
  private readonly ask: (signal: AbortSignal) => Promise<T>
  private readonly changed: (state: Polled<T>) => void
  private every: number

  constructor(world: World, every: number, ask: (signal: AbortSignal) => Promise<T>, changed: (state: Polled<T>) => void) {
    this.world = world
    this.every = every
    this.ask = ask
    this.changed = changed
  }

  start(): void {
    if (this.active) return
    this.active = true
    if (this.world.isVisible()) void this.run()
  }

  stop(): void {
    this.active = false
    this.pause()
  }

  /** The page went out of sight, or came back. */
  seen(): void {
    if (!this.active) return
    if (this.world.isVisible()) void this.run()
    else this.pause()
  }

  /** Ask now, whatever was planned. */
  hurry(): void {
    if (this.active && this.world.isVisible()) void this.run()
  }

  pace(every: number): void {
    const sooner = every < this.every
    this.every = every
    if (sooner && this.active && this.running === null && this.state.failing === null) this.plan(every)
  }

  private pause(): void {
    this.world.cancel(this.timer)
    this.timer = null
    this.running?.abort()
    this.running = null
  }

  private plan(ms: number): void {
    this.world.cancel(this.timer)
    this.timer = this.world.after(ms, () => void this.run())
  }

  private async run(): Promise<void> {
    if (this.running !== null) return
    this.world.cancel(this.timer)
    const running = new AbortController()
    this.running = running
    const begun = this.world.now()
    let next: Polled<T>
    let wait: number
    try {
      const data = await this.ask(running.signal)
      if (this.running !== running) return
      const at = this.world.now()
      next = { data, at, failing: null }
      wait = Math.max(this.every, REST * (at - begun))
    } catch (error) {
      // Nobody waits for it any more.
      if (this.running !== running) return
      const { at, failing, data } = this.state
      const tries = (failing?.tries ?? 0) + 1
      wait = backoff(tries)
      const now = this.world.now()
      const status = error instanceof Refused ? error.status : 0
      const message = error instanceof Error ? error.message : String(error)
      // What is gone is not shown as if it were there.
      const kept = status === 404 ? null : data
      next = { data: kept, at, failing: { since: failing?.since ?? at ?? now, message, status, tries, again: now + wait } }
    }
    this.running = null
    this.state = next
    if (this.active && this.world.isVisible()) this.plan(wait)
    this.changed(next)
  }
}
