// Where the reader is, kept in the address; going back finds the page where it was left.

import { useCallback, useEffect, useState } from 'preact/hooks'
import { parse, type Place } from './route.ts'

const left = new Map<string, number>()
let clicked = false
let before = location.hash

/** What is shown, after every change of the address. */
export function usePlace(): Place {
  const [place, set] = useState(() => parse(location.hash))
  useEffect(() => {
    // The browser would scroll before the other view is drawn.
    history.scrollRestoration = 'manual'
    const onClick = (event: MouseEvent) => {
      if (event.target instanceof Element && event.target.closest('a[href^="#"]') !== null) clicked = true
    }
    const onScroll = () => left.set(location.hash, scrollY)
    const onChange = () => {
      const wasClicked = clicked
      clicked = false
      set(parse(location.hash))
      if (parse(before).route.view === parse(location.hash).route.view && !wasClicked) {
        before = location.hash
        return
      }
      before = location.hash
      const top = wasClicked ? 0 : (left.get(location.hash) ?? 0)
      // Twice: the list knows its length after the first frame.
      requestAnimationFrame(() => {
        scrollTo(0, top)
        requestAnimationFrame(() => {
          scrollTo(0, top)
          document.getElementById('title')?.focus({ preventScroll: true })
        })
      })
    }
    addEventListener('click', onClick, true)
    addEventListener('scroll', onScroll, { passive: true })
    addEventListener('hashchange', onChange)
    return () => {
      removeEventListener('click', onClick, true)
      removeEventListener('scroll', onScroll)
      removeEventListener('hashchange', onChange)
    }
  }, [])
  return place
}

/** A choice that stays in the address, without a step of its own to go back over. */
export function useParam(name: string, usual: string): [string, (value: string) => void] {
  const [value, set] = useState(() => parse(location.hash).params.get(name) ?? usual)
  useEffect(() => {
    const changed = () => set(parse(location.hash).params.get(name) ?? usual)
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [name, usual])
  const choose = useCallback(
    (next: string) => {
      set(next)
      const { params } = parse(location.hash)
      if (next === usual) params.delete(name)
      else params.set(name, next)
      const path = location.hash.split('?', 1)[0] || '#/'
      const query = params.toString()
      history.replaceState(history.state, '', query === '' ? path : `${path}?${query}`)
      before = location.hash
    },
    [name, usual],
  )
  return [value, choose]
}
