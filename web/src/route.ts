// Which view is shown? Everything is in the address behind the `#`, so that a view can be sent to somebody.

export type Route =
  | { view: 'cluster' | 'decisions' | 'protection' | 'data' | 'fleet' }
  | { view: 'node'; name: string }
  | { view: 'pod' | 'placement' | 'binding'; namespace: string; name: string }

export interface Place {
  route: Route
  /** What the view remembers: order, filter, resource. */
  params: URLSearchParams
}

const VIEWS = ['decisions', 'protection', 'data', 'fleet'] as const

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const params = new URLSearchParams(query)
  const [first = '', second = '', third = ''] = path.split('/').map(decoded)
  const view = VIEWS.find((name) => name === first)
  if (view !== undefined) return { route: { view }, params }
  if (first === 'node' && second !== '') return { route: { view: 'node', name: second }, params }
  if ((first === 'pod' || first === 'placement') && second !== '' && third !== '') {
    return { route: { view: first, namespace: second, name: third }, params }
  }
  // Some bindings are in no namespace.
  if (first === 'binding' && third !== '') return { route: { view: 'binding', namespace: second, name: third }, params }
  return { route: { view: 'cluster' }, params }
}

export const toNode = (name: string) => `#/node/${encodeURIComponent(name)}`

/** Of `namespace/name`. */
export function toPod(pod: string): string {
  const [namespace = '', name = ''] = pod.split('/', 2)
  return `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
}

/** Of `namespace/name`, or of a name alone. */
export function toFleet(view: 'placement' | 'binding', key: string): string {
  const [first = '', second] = key.split('/', 2)
  const [namespace, name] = second === undefined ? ['', first] : [first, second]
  return `#/${view}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
}
