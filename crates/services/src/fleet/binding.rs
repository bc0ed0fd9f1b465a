//! Which clusters get how many replicas? Karmada's bindings, divided and written.
