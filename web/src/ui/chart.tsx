// The last hour: a few lines, told apart by how they are drawn and not by colour alone. What is not known is a gap.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Series } from '../api.ts'
import { clock, UNKNOWN } from '../format.ts'

export interface Curve {
  name: string
  values: Series
  look: 'used' | 'requested' | 'expected' | 'worst'
}

interface Props {
  title: string
  curves: Curve[]
  stepSeconds: number
  end: string
  /** Drawn across, as the line. */
  line?: number | null
  lineName?: string
  /** The top is at least here. */
  top: number
  format: (value: number | null | undefined) => string
}

const HEIGHT = 132
const BELOW = 18
/** Left of the plot, for its scale. */
const GUTTER = 44
const LEAST_POINTS = 20

/** Pieces of a path; a gap where nothing is known, a dot where a value stands alone. */
export function path(values: Series, x: (at: number) => number, y: (value: number) => number): string {
  let out = ''
  let drawing = false
  values.forEach((value, at) => {
    if (value === null || value === undefined) {
      drawing = false
      return
    }
    out += `${drawing ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`
    const next = values[at + 1]
    if (!drawing && (next === null || next === undefined)) out += 'h.01'
    drawing = true
  })
  return out
}

/** A round number not below: 1, 2, 2.5, 5, 10, 20 … */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1
  const scale = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 2.5, 5, 10].find((step) => step * scale >= value * 0.9999) ?? 10
  return step * scale
}

export function Chart({ title, curves, stepSeconds, end, line, lineName, top, format }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(480)
  const [cursor, setCursor] = useState<number | null>(null)
  useEffect(() => {
    if (box.current === null) return
    const observer = new ResizeObserver(([entry]) => entry !== undefined && setWidth(Math.round(entry.contentRect.width)))
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [])

  const points = Math.max(0, ...curves.map((curve) => curve.values.length))
  const span = Math.max(LEAST_POINTS, points)
  const first = span - points
  let most = Math.max(top, line ?? 0)
  for (const curve of curves) for (const value of curve.values) if (value !== null && value > most) most = value
  const high = most > top ? roundUp(most) : top
  const x = (at: number) => ((first + at) / Math.max(1, span - 1)) * (width - GUTTER) + GUTTER
  const y = (value: number) => HEIGHT - (Math.min(high, Math.max(0, value)) / high) * (HEIGHT - 6)
  const timeAt = (at: number) => Date.parse(end) - (points - 1 - at) * stepSeconds * 1000
  const short = (time: number) => clock(time).slice(0, 5)
  const shown = cursor === null ? points - 1 : Math.min(points - 1, cursor)
  const said = (at: number) => `${clock(timeAt(at))}: ${curves.map((c) => `${c.name} ${format(c.values[at])}`).join(', ')}`

  const onPointerMove = (event: PointerEvent) => {
    if (box.current === null || points === 0) return
    const part = (event.clientX - box.current.getBoundingClientRect().left - GUTTER) / Math.max(1, width - GUTTER)
    setCursor(Math.max(0, Math.min(points - 1, Math.round(part * (span - 1)) - first)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, PageUp: shown - 20, PageDown: shown + 20, Home: 0, End: points - 1, Escape: -1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    setCursor(event.key === 'Escape' ? null : Math.max(0, Math.min(points - 1, to)))
  }

  return (
    <figure class="chart">
      <figcaption>
        <span class="what">{title}</span>
        <span class="when">{points === 0 ? '' : cursor === null ? 'now' : clock(timeAt(shown))}</span>
      </figcaption>
      <div
        ref={box}
        class="plot"
        tabIndex={0}
        role="slider"
        aria-label={`${title}, moment shown`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, points - 1)}
        aria-valuenow={Math.max(0, shown)}
        aria-valuetext={points === 0 ? 'nothing known yet' : said(shown)}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setCursor(null)}
        onKeyDown={onKeyDown}
        onBlur={() => setCursor(null)}
      >
        <svg width={width} height={HEIGHT + BELOW} aria-hidden="true">
          {[0, 0.5, 1].map((part) => (
            <path key={part} class="grid" d={`M${GUTTER} ${y(high * part)}H${width}`} />
          ))}
          {points > 1 && [0.25, 0.5, 0.75].map((part) => {
            const at = Math.round(part * (span - 1)) - first
            return at < 0 ? null : <text key={part} class="tick" text-anchor="middle" x={GUTTER + part * (width - GUTTER)} y={HEIGHT + 13}>{short(timeAt(at))}</text>
          })}
          {points > 0 && <text class="tick" text-anchor="end" x={width} y={HEIGHT + 13}>{short(timeAt(points - 1))}</text>}
          {line !== null && line !== undefined && <path class="mark" d={`M${GUTTER} ${y(line)}H${width}`} />}
          {curves.map((curve) => (
            <path key={curve.name} class={`curve ${curve.look}`} d={path(curve.values, x, y)} />
          ))}
          {[0, 0.5, 1].map((part) => (
            <text key={part} class="tick" text-anchor="end" x={GUTTER - 6} y={y(high * part) + 4}>{format(high * part)}</text>
          ))}
          {cursor !== null && points > 0 && <path class="cursor" d={`M${x(shown).toFixed(1)} 0V${HEIGHT}`} />}
        </svg>
        {points === 0 && <p class="empty">Nothing known yet; a point comes every {stepSeconds} s.</p>}
      </div>
      <ul class="legend">
        {curves.map((curve) => (
          <li key={curve.name}>
            <svg width="22" height="8" aria-hidden="true"><path class={`curve ${curve.look}`} d="M1 4H21" /></svg>
            {curve.name} <b>{points === 0 ? UNKNOWN : format(curve.values[shown])}</b>
          </li>
        ))}
        {line !== null && line !== undefined && (
          <li>
            <svg width="22" height="8" aria-hidden="true"><path class="mark" d="M1 4H21" /></svg>
            {lineName ?? 'the line'} <b>{format(line)}</b>
          </li>
        )}
      </ul>
    </figure>
  )
}
