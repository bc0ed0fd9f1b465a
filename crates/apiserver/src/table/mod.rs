//! Objects as rows: the `Table` that kubectl prints.
