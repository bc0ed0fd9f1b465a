//! Where does one document of a file end and the next begin, and where the items of a long list?
//!
//! Both can be told from the first column alone: a line that starts with `---` there is never part of a scalar, and
//! neither is one that starts with a dash within a list of objects. So long files are cut before they are read, and
//! the pieces are read side by side.

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// In which line of the file it starts, counted from 1.
    pub line: usize,
    /// How many collections of its document are around it.
    pub depth: usize,
    pub text: &'a str,
}

impl Piece<'_> {
    /// What a parser says is wrong at a line and column of the piece, told of the file.
    pub fn wrong(self, line: usize, column: usize, message: &str) -> String {
        // Parsers say where in their own words, too.
        let message = message.split(" at line ").next().unwrap_or_default();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("line {}, column {column}: {message}", line.saturating_add(self.line - 1))
    }
}

/// A list, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct List<'a> {
    /// The document without the items.
    pub frame: String,
    /// The items; each is a sequence of one.
    pub items: Vec<Piece<'a>>,
}

/// The documents of a file, without those that say nothing.
pub fn documents(text: &str) -> Vec<Piece<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    let (mut start, mut first) = (0, 1);
    let mut take = |from: usize, to: usize, line: usize| {
        let piece = Piece { line, depth: 0, text: &text[from..to] };
        if says_something(piece.text) {
            found.push(piece);
        }
    };
    for (number, at, line) in lines(text) {
        if is_marker(line, "---") || is_marker(line, "...") {
            take(start, at, first);
            // What follows a marker on its line belongs to the document.
            let bare = line.trim_end().len() == 3 || line.starts_with("...");
            start = if bare { at + line.len() } else { at };
            first = if bare { number + 1 } else { number };
        }
    }
    take(start, text.len(), first);
    found
}

/// A document taken apart, if it is a list and its items start in the first column, as kubectl prints them.
pub fn items(document: Piece<'_>) -> Option<List<'_>> {
    let text = document.text;
    let mut starts = Vec::new();
    let mut begin = None;
    let mut end = text.len();
    for (number, at, line) in lines(text) {
        match begin {
            None if line.trim_end() == "items:" => begin = Some(at + line.len()),
            None => {}
            Some(_) if line.starts_with("- ") || line.trim_end() == "-" => starts.push((number, at)),
            Some(_) if line.starts_with([' ', '#', '\n', '\r']) => {}
            Some(_) => {
                end = at;
                break;
            }
        }
    }
    let (begin, (_, first)) = (begin?, starts.first()?);
    // Nothing but comments may stand between.
    if says_something(&text[begin..*first]) {
        return None;
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([end]);
    let piece = |((number, from), to): (&(usize, usize), usize)| Piece {
        line: document.line + number - 1,
        depth: document.depth + 1,
        text: &text[*from..to],
    };
    let items = starts.iter().zip(ends).map(piece).collect();
    Some(List { frame: format!("{}{}", &text[..*first], &text[end..]), items })
}

/// Every line with its number, where it starts, and its end.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').enumerate().map(move |(number, line)| {
        let start = at;
        at += line.len();
        (number + 1, start, line)
    })
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
}

/// Is there anything but comments and directives?
fn says_something(text: &str) -> bool {
    let silent = |line: &str| {
        let content = line.trim();
        content.is_empty() || content.starts_with('#') || line.starts_with('%')
    };
    !text.lines().all(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_end_at_markers_in_the_first_column() {
        for (why, text, expected) in [
            ("one without markers", "a: 1\n", vec![(1, "a: 1\n")]),
            ("markers around", "---\na: 1\n---\n", vec![(2, "a: 1\n")]),
            ("two", "a: 1\n---\nb: 2", vec![(1, "a: 1\n"), (3, "b: 2")]),
            ("empty ones do not count", "---\n# only this\n---\n\n---\na: 1\n", vec![(6, "a: 1\n")]),
            ("an indented marker is text", "a: |\n  ---\n", vec![(1, "a: |\n  ---\n")]),
            ("so is a longer one", "a:\n----x\n", vec![(1, "a:\n----x\n")]),
            ("what follows a marker belongs to it", "--- {a: 1}\n", vec![(1, "--- {a: 1}\n")]),
            ("a remark after a marker", "--- # x\na: 1\n", vec![(1, "--- # x\na: 1\n")]),
            ("an end", "a: 1\n...\n---\nb: 2\n", vec![(1, "a: 1\n"), (4, "b: 2\n")]),
            ("a directive", "%YAML 1.2\n---\na: 1\n", vec![(3, "a: 1\n")]),
            ("a byte order mark", "\u{feff}a: 1\n", vec![(1, "a: 1\n")]),
            ("nothing", "", vec![]),
        ] {
            let found: Vec<_> = documents(text).into_iter().map(|piece| (piece.line, piece.text)).collect();
            assert_eq!(found, expected, "{why}");
        }
    }

    #[test]
    fn items_start_in_the_first_column() {
        let text = "kind: List\nitems:\n- a: 1\n  b: |\n    - x\n# note\n- a: 2\nmetadata: {}\n";
        let list = items(Piece { line: 10, depth: 0, text }).unwrap();
        assert_eq!(list.frame, "kind: List\nitems:\nmetadata: {}\n");
        let expected = [(12, "- a: 1\n  b: |\n    - x\n# note\n"), (16, "- a: 2\n")];
        assert_eq!(list.items, expected.map(|(line, text)| Piece { line, depth: 1, text }));
        for (why, text) in [
            ("no items", "kind: List\nitems: []\n"),
            ("indented items are read with their document", "items:\n  - a: 1\n"),
            ("something in between", "items:\n  x: 1\n- a: 1\n"),
            ("not a list", "a:\n- b\n"),
        ] {
            assert_eq!(items(Piece { line: 1, depth: 0, text }), None, "{why}");
        }
    }
}
