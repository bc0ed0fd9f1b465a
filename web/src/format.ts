// How are amounts, shares and times written? Unknown is a dash, never 0.

import type { Resource } from './api.ts'

export const UNKNOWN = '–'

/** A number with as many digits as help: 0.043, 0.43, 4.3, 43, 4 300. */
export function figure(value: number): string {
  const size = Math.abs(value)
  const digits = size === 0 ? 0 : size < 0.1 ? 3 : size < 1 ? 2 : size < 100 ? 1 : 0
  return grouped(trimmed(value.toFixed(digits)))
}

const trimmed = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text).replace(/^-0$/, '0')

/** 12345.6 as 12 345.6, with spaces that do not break. */
export function grouped(text: string | number): string {
  const [whole = '', part] = String(text).split('.')
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, '\u202f')
  return part === undefined ? spaced : `${spaced}.${part}`
}

export const cores = (value: number | null | undefined) =>
  value === null || value === undefined ? UNKNOWN : figure(value)

/** Cores to the thousandth, where a small difference decides. */
export const exact = (value: number | null | undefined) =>
  value === null || value === undefined ? UNKNOWN : grouped(trimmed(value.toFixed(3)))

const STEPS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  let [size, step] = [Math.abs(value), 0]
  while (size >= 1023.95 && step < STEPS.length - 1) [size, step] = [size / 1024, step + 1]
  return `${figure(Math.sign(value) * (size === 0 ? 0 : size))}\u00a0${STEPS[step]}`
}

/** CPU in cores, memory in bytes. */
export const amount = (resource: Resource, value: number | null | undefined) =>
  resource === 'cpu' ? cores(value) : bytes(value)

/** The same with its unit, for sentences. */
export const amountOf = (resource: Resource, value: number | null | undefined) =>
  resource === 'memory' || value === null || value === undefined
    ? amount(resource, value)
    : `${cores(value)}\u00a0${value === 1 ? 'core' : 'cores'}`

/** 0.513 as 51 %; small ones with a digit more. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN
  const value = share * 100
  return `${trimmed(value.toFixed(Math.abs(value) < 9.95 ? 1 : 0))}\u00a0%`
}

/** 3 s, 4 min, 2 h, 3 d. */
export function age(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN
  const s = Math.max(0, Math.round(seconds))
  if (s < 100) return `${s}\u00a0s`
  if (s < 100 * 60) return `${Math.round(s / 60)}\u00a0min`
  if (s < 48 * 3600) return `${Math.round(s / 3600)}\u00a0h`
  return `${Math.round(s / 86400)}\u00a0d`
}

/** How long ago, as a person says it. */
export const ago = (seconds: number) => (seconds < 1.5 ? 'now' : `${age(seconds)} ago`)

const two = (value: number) => String(value).padStart(2, '0')

/** The time of day where the reader is: 12:03:04. */
export function clock(at: string | number | null | undefined): string {
  const date = at === null || at === undefined ? null : new Date(at)
  if (date === null || Number.isNaN(date.getTime())) return UNKNOWN
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** An amount in the unit of a metric: 2500 millicores as 2.5 cores. */
export function inUnit(value: number, unit: string): string {
  if (unit === 'millicores') return `${exact(value / 1000)}\u00a0${value === 1000 ? 'core' : 'cores'}`
  if (unit === 'bytes') return bytes(value)
  return `${figure(value)}${unit === '' ? '' : `\u00a0${unit}`}`
}

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${grouped(count)}\u00a0${count === 1 ? one : many}`

/** `interPodAffinity` as "inter pod affinity". */
export const words = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()

const SUFFIXES: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
}

/** A Kubernetes quantity as a number, for drawing; null where it is none. */
export function quantity(text: string | null | undefined): number | null {
  const found = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text ?? '')
  if (found === null) return null
  const [, number, exponent, suffix] = found
  const scale = exponent === undefined ? SUFFIXES[suffix ?? ''] : 10 ** Number(exponent)
  return scale === undefined ? null : Number(number) * scale
}
