// What was decided, as it happens.

import { useMemo } from 'preact/hooks'
import type { Happening } from '../api.ts'
import { clock, grouped, plural } from '../format.ts'
import { matching } from '../nodes.ts'
import { useParam } from '../place.ts'
import { toPod } from '../route.ts'
import { programNow, useHappenings } from '../store.ts'
import { ActBadge } from './acts.tsx'
import { Ago, Choice, Filter, Icon, NARROW, Times, Title, useHeld, useHold, useMedia } from './bits.tsx'
import { List } from './list.tsx'

const ONLY = [
  ['all', 'All'],
  ['unplaced', 'Without a node'],
] as const

export function DecisionsView({ waiting }: { waiting: number | null }) {
  const { buffer, version, polled } = useHappenings()
  const [filter, setFilter] = useParam('q', '')
  const [only, setOnly] = useParam('only', 'all')
  const { held, hold } = useHold()
  const narrow = useMedia(NARROW)
  const all = useMemo(() => buffer.of('decision'), [version])
  const kept = useHeld(all, held, `${filter} ${only}`)
  const shown = useMemo(() => {
    const those = only === 'unplaced' ? kept.filter((item) => item.reason !== 'Scheduled') : kept
    return matching(those, filter, (item: Happening) => `${item.about} ${item.node ?? ''} ${item.reason} ${item.text}`)
  }, [kept, filter, only])
  const newer = kept === all ? 0 : all.findIndex((item) => item.seq === kept[0]?.seq)
  const minute = useMemo(() => {
    const since = programNow() - 60_000
    const end = all.findIndex((item) => Date.parse(item.at) < since)
    const of = all.slice(0, end < 0 ? all.length : end)
    return { all: of.length, failed: of.filter((item) => item.reason === 'FailedScheduling').length, more: end < 0 && all.length >= 5000 }
  }, [all])
  return (
    <>
      <Title>Decisions</Title>
      <p class="lead">
        Every pod that got a node, or did not, the newest first. Open one to read <b>why here, and why not there</b>: each node with its
        verdict, its load and its score.
      </p>
      <p class="facts">
        <span><b>{minute.more ? 'more than ' : ''}{grouped(minute.all)}</b> in the last minute</span>
        <span class={minute.failed > 0 ? 'bad' : ''}><b>{grouped(minute.failed)}</b> of them found no node</span>
        {waiting !== null && <span class={waiting > 0 ? 'bad' : ''}><b>{plural(waiting, 'pod')}</b> waiting now</span>}
        {buffer.problem !== null && all.length > 0 && <span class="bad"><Icon of="ask" /> nothing newer is known: Events cannot be read: {buffer.problem}</span>}
        {buffer.skipped > 0 && <span>{grouped(buffer.skipped)} passed over: more happened than this page can hold</span>}
      </p>
      <div class="bench">
        <h2>{grouped(shown.length)} <span class="muted">shown</span></h2>
        <Choice label="Which decisions" value={only === 'unplaced' ? 'unplaced' : 'all'} of={ONLY} set={setOnly} />
        <Filter label="Filter by pod, node, reason" value={filter} set={setFilter} />
        <span class="held" role="status">{held && newer > 0 ? `held while you are here · ${grouped(newer)} newer` : ''}</span>
      </div>
      {shown.length === 0 ? (
        <p class="note">
          {all.length > 0 ? 'None of what is known is like this.' : polled.failing !== null
            ? `Decisions are not known since ${clock(polled.failing.since)}: ${polled.failing.message}`
            : buffer.problem !== null ? `Decisions are not known: they are told as Events, and those cannot be read: ${buffer.problem}`
            : 'Nothing was decided yet. Create a pod, for example: kubectl create deployment web --image=nginx --replicas=40'}
        </p>
      ) : (
        <div {...hold}>
          <List items={shown} rowHeight={narrow ? 66 : 36} keyOf={(item) => String(item.seq)} label="Decisions">
            {(item) => (
              <a class={item.reason === 'Scheduled' ? 'row decision' : 'row decision unplaced'} href={toPod(item.about)}>
                <Ago at={item.at} />
                <ActBadge item={item} />
                <span class="name" title={item.about}>{item.about}</span>
                <span class="text" title={item.text}>
                  {item.reason === 'Scheduled' && item.node !== null ? <><span class="hidden">to</span><span aria-hidden="true">→</span> <b>{item.node}</b></> : item.text}
                  <Times item={item} />
                </span>
              </a>
            )}
          </List>
        </div>
      )}
    </>
  )
}
