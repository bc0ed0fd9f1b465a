// A list of any length: only the rows that can be seen are there. The page itself scrolls.

import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const MORE = 6
/** So many are always there: a list that is about to come into view is not empty. */
const LEAST = 12

interface Props<T> {
  items: readonly T[]
  rowHeight: number
  keyOf: (item: T) => string
  label: string
  children: (item: T) => ComponentChildren
}

export function List<T>({ items, rowHeight, keyOf, label, children }: Props<T>) {
  const list = useRef<HTMLUListElement>(null)
  const [[first, last], setRange] = useState<readonly [number, number]>([0, 30])
  const [focused, setFocused] = useState<string | null>(null)
  const wanted = useRef<number | null>(null)

  const look = useCallback(() => {
    if (list.current === null) return
    const { top } = list.current.getBoundingClientRect()
    const from = Math.max(0, Math.floor(-top / rowHeight) - MORE)
    const to = Math.max(from + LEAST, Math.ceil((innerHeight - top) / rowHeight) + MORE)
    setRange((range) => (range[0] === from && range[1] === to ? range : [from, to]))
  }, [rowHeight])

  useEffect(() => {
    let frame = 0
    const soon = () => {
      if (frame === 0) {
        frame = requestAnimationFrame(() => {
          frame = 0
          look()
        })
      }
    }
    addEventListener('scroll', soon, { passive: true })
    addEventListener('resize', soon, { passive: true })
    // What stands above may grow or shrink.
    const observer = new ResizeObserver(soon)
    observer.observe(document.body)
    return () => {
      cancelAnimationFrame(frame)
      observer.disconnect()
      removeEventListener('scroll', soon)
      removeEventListener('resize', soon)
    }
  }, [look])
  useLayoutEffect(look, [look, items.length])
  useLayoutEffect(() => {
    if (wanted.current === null) return
    const row = list.current?.querySelector<HTMLElement>(`[data-at="${wanted.current}"] a`)
    if (row !== null && row !== undefined) {
      wanted.current = null
      row.focus({ preventScroll: true })
    }
  })

  const go = (at: number) => {
    if (list.current === null || items.length === 0) return
    const to = Math.max(0, Math.min(items.length - 1, at))
    wanted.current = to
    const top = list.current.getBoundingClientRect().top + scrollY + to * rowHeight
    // Something of the page stays above: what sticks there would hide the row.
    const [above, below] = [scrollY + 140, scrollY + innerHeight - 2 * rowHeight]
    if (top < above) scrollTo({ top: top - 140 })
    else if (top > below) scrollTo({ top: top - innerHeight + 2 * rowHeight })
    look()
    setFocused(null)
  }

  const onKeyDown = (event: KeyboardEvent) => {
    const at = Number((event.target as HTMLElement).closest('li')?.dataset['at'])
    if (Number.isNaN(at) || event.altKey || event.ctrlKey || event.metaKey) return
    const page = Math.max(1, Math.floor((innerHeight - 200) / rowHeight))
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: items.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    go(to)
  }

  const shown: number[] = []
  for (let at = first; at < Math.min(last, items.length); at++) shown.push(at)
  // Who has the focus stays, or it would be lost with the row.
  if (focused !== null) {
    const at = items.findIndex((item) => keyOf(item) === focused)
    if (at >= 0 && at < first) shown.unshift(at)
    else if (at >= last) shown.push(at)
  }

  return (
    <ul
      class="list"
      role="list"
      aria-label={label}
      ref={list}
      style={{ height: `${items.length * rowHeight}px` }}
      onKeyDown={onKeyDown}
      onFocusIn={(event) => setFocused((event.target as HTMLElement).closest('li')?.dataset['key'] ?? null)}
      onFocusOut={() => setFocused(null)}
    >
      {shown.map((at) => {
        const item = items[at]
        if (item === undefined) return null
        const key = keyOf(item)
        return (
          <li
            key={key}
            data-at={at}
            data-key={key}
            aria-setsize={items.length}
            aria-posinset={at + 1}
            style={{ height: `${rowHeight}px`, transform: `translateY(${at * rowHeight}px)` }}
          >
            {children(item)}
          </li>
        )
      })}
    </ul>
  )
}
