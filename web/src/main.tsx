import { render } from 'preact'
import { begin } from './store.ts'
import { chosen, wear } from './theme.ts'
import { App } from './ui/app.tsx'

const root = document.getElementById('app')
if (root !== null) {
  wear(chosen())
  root.textContent = ''
  begin()
  render(<App />, root)
}
