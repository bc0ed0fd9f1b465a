//! Tables for people: columns that align, figures to the right, nothing after the last word.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table in the making.
#[derive(Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With a heading.
    pub fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        Self::of(&columns)
    }

    /// With a heading of columns that are not always the same.
    pub fn of(columns: &[(&str, Align)]) -> Self {
        Self {
            align: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect()],
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// As text, every line after that many blanks.
    pub fn render(&self, indent: usize) -> String {
        lines(&self.rows, &self.align, indent)
    }
}

fn lines(rows: &[Vec<String>], align: &[Align], indent: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let gap = " ".repeat(width - cell.chars().count());
            let (first, second) = match align[column] {
                Align::Left => (cell.as_str(), gap.as_str()),
                Align::Right => (gap.as_str(), cell.as_str()),
            };
            line.push_str(first);
            line.push_str(second);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_whatever_is_in_them() {
        let mut table = Table::new([("NODE", Align::Left), ("SCORE", Align::Right), ("WHY", Align::Left)]);
        table.row(["n1", "7", ""].map(str::to_owned));
        table.row(["größer", "100", "too full"].map(str::to_owned));
        assert_eq!(table.render(1), " NODE    SCORE  WHY\n n1          7\n größer    100  too full\n");
    }
}
