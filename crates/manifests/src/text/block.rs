//! What does a YAML document say, if it is written the way kubectl writes it?
//!
//! kubectl prints block mappings and sequences, one scalar to a line. That is a small part of YAML and can be read about
//! six times as fast as all of it: of a large file, reading it would else be most of the work
//! (`docs/benchmarks.md`, "From a file to the answer"). [`parse`] reads this part and answers `None` for everything else, also
//! for everything wrong: a complete parser then reads the document again and has the last word. Whatever is answered here,
//! the complete parser would have answered alike; a property test and the fuzz target `yaml` hold it to that.

use serde_json::{Map, Value};

/// Deeper documents are left to the complete parser, which refuses them.
const DEPTH: usize = 48;

/// The value of a document, or `None` if it holds anything unusual.
pub fn parse(text: &str) -> Option<Value> {
    // Control characters, tabs and characters beyond ASCII have rules of their own.
    if !text.bytes().all(|b| b == b'\n' || (b' '..0x7f).contains(&b)) {
        return None;
    }
    let mut reader = Reader { text, next: 0, indent: 0, content: "" };
    reader.advance();
    let value = if reader.ended() { return None } else { reader.block(DEPTH)? };
    reader.ended().then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    /// Where the line after the current one starts.
    next: usize,
    /// In which column the current line's content starts.
    indent: usize,
    /// The current line without its indentation; empty at the end.
    content: &'a str,
}

impl<'a> Reader<'a> {
    fn ended(&self) -> bool {
        self.content.is_empty()
    }

    /// The next line as it is, without its end.
    fn raw(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.next..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_once('\n').map_or(rest, |(line, _)| line);
        self.next += line.len() + 1;
        Some(line)
    }

    /// Goes to the next line that says something.
    fn advance(&mut self) {
        while let Some(line) = self.raw() {
            let content = line.trim_start_matches(' ');
            if !content.is_empty() && !content.starts_with('#') {
                self.indent = line.len() - content.len();
                self.content = content.trim_end_matches(' ');
                return;
            }
        }
        (self.indent, self.content) = (0, "");
    }

    /// The collection or scalar that starts at the current place.
    fn block(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        if is_entry(self.content) {
            return self.sequence(depth);
        }
        if split_key(self.content).is_some() {
            return self.mapping(depth);
        }
        let (indent, content) = (self.indent, self.content);
        let value = scalar(content)?;
        self.advance();
        // More of the same scalar on the next line.
        (self.ended() || self.indent < indent).then_some(value)
    }

    fn mapping(&mut self, depth: usize) -> Option<Value> {
        let indent = self.indent;
        let mut fields = Map::new();
        while !self.ended() && self.indent == indent {
            let (key, rest) = split_key(self.content)?;
            let value = self.value(indent, rest, depth)?;
            if fields.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
        (self.ended() || self.indent < indent).then_some(Value::Object(fields))
    }

    /// What belongs to a key, and goes to the line after it.
    fn value(&mut self, indent: usize, rest: &'a str, depth: usize) -> Option<Value> {
        if let Some(chomp) = rest.strip_prefix('|') {
            return self.literal(indent, chomp);
        }
        self.advance();
        if !rest.is_empty() {
            let continued = !self.ended() && self.indent > indent;
            return if continued { None } else { scalar(rest) };
        }
        if self.ended() || self.indent < indent {
            Some(Value::Null)
        } else if self.indent > indent {
            self.block(depth)
        } else if is_entry(self.content) {
            self.sequence(depth.checked_sub(1)?)
        } else {
            Some(Value::Null)
        }
    }

    fn sequence(&mut self, depth: usize) -> Option<Value> {
        let indent = self.indent;
        let mut items = Vec::new();
        while !self.ended() && self.indent == indent && is_entry(self.content) {
            let rest = self.content[1..].trim_start_matches(' ');
            if rest.is_empty() {
                self.advance();
                let nested = !self.ended() && self.indent > indent;
                items.push(if nested { self.block(depth)? } else { Value::Null });
            } else {
                self.indent += self.content.len() - rest.len();
                self.content = rest;
                items.push(self.item(indent, depth)?);
            }
        }
        (self.ended() || self.indent <= indent).then_some(Value::Array(items))
    }

    /// What follows a dash on the same line.
    fn item(&mut self, indent: usize, depth: usize) -> Option<Value> {
        if is_entry(self.content) || split_key(self.content).is_some() {
            return self.block(depth);
        }
        let value = scalar(self.content)?;
        self.advance();
        (self.ended() || self.indent <= indent).then_some(value)
    }

    /// Lines kept as they are, after `|`.
    fn literal(&mut self, indent: usize, chomp: &str) -> Option<Value> {
        if !matches!(chomp, "" | "-" | "+") {
            return None;
        }
        let mut text = String::new();
        let mut column = None;
        loop {
            let before = self.next;
            // How the last line ends matters; a file that breaks off within one is unusual.
            if self.text.get(before..).is_some_and(|rest| !rest.is_empty() && !rest.contains('\n')) {
                return None;
            }
            let Some(line) = self.raw() else { break };
            let spaces = line.len() - line.trim_start_matches(' ').len();
            let column = match column {
                Some(column) => column,
                None if spaces == line.len() || spaces <= indent => return None,
                None => *column.insert(spaces),
            };
            if spaces < column && spaces < line.len() {
                self.next = before;
                break;
            }
            text.push_str(line.get(column..).unwrap_or_default());
            text.push('\n');
        }
        self.advance();
        if chomp != "+" {
            let kept = text.trim_end_matches('\n').len();
            text.truncate(kept + usize::from(chomp.is_empty()));
        }
        Some(Value::String(text))
    }
}

/// Does the line start an entry of a sequence?
fn is_entry(content: &str) -> bool {
    content == "-" || content.starts_with("- ")
}

/// A line `key: rest` in two.
fn split_key(content: &str) -> Option<(&str, &str)> {
    let bytes = content.as_bytes();
    let first = bytes.first()?;
    let colon = if *first == b'"' {
        let end = 1 + content[1..].find(['"', '\\'])?;
        (bytes[end] == b'"').then_some(end + 1)?
    } else if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'.' | b'/') {
        let ends = |at: &usize| bytes[*at] == b':' && bytes.get(at + 1).is_none_or(|b| *b == b' ');
        let space = bytes.iter().position(|b| *b == b' ').unwrap_or(bytes.len());
        (0..space).find(ends)?
    } else {
        return None;
    };
    let rest = content.get(colon..)?.strip_prefix(':')?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let key = if *first == b'"' { &content[1..colon - 1] } else { &content[..colon] };
    // Keys that are no text have several spellings, or are none: that is for the complete parser.
    let is_text = if *first == b'"' { !key.eq_ignore_ascii_case("null") } else { is_text(key) };
    is_text.then_some((key, rest.trim_start_matches(' ')))
}

/// Is a key without quotes text, and neither a number nor a word that means something?
fn is_text(key: &str) -> bool {
    match key.as_bytes() {
        [first, ..] if first.is_ascii_digit() => matches!(number(key), Some(Value::String(_))),
        [b'.', second, ..] => {
            !second.is_ascii_digit() && !["inf", "nan"].iter().any(|word| key[1..].eq_ignore_ascii_case(word))
        }
        _ => !is_word(key),
    }
}

/// Words that mean something, to some readers at least.
fn is_word(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.len() <= 5 && words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// The value of a scalar that is complete on its line.
fn scalar(text: &str) -> Option<Value> {
    match (text, text.as_bytes().first()?) {
        ("{}", _) => Some(Value::Object(Map::new())),
        ("[]", _) => Some(Value::Array(Vec::new())),
        (_, b'"') => double_quoted(text),
        (_, b'\'') => {
            let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
            (!inner.contains('\'')).then(|| Value::String(inner.to_owned()))
        }
        _ => plain(text),
    }
}

fn double_quoted(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains(['"', '\\']) {
        return Some(Value::String(inner.to_owned()));
    }
    // What JSON escapes, YAML escapes alike; the other escapes of YAML are no JSON.
    serde_json::from_str(text).ok().map(Value::String)
}

/// A scalar without quotes: a word, a number or text.
fn plain(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        "null" | "~" => return Some(Value::Null),
        _ => {}
    }
    if text.contains(": ") || text.contains(" #") || text.ends_with(':') {
        return None;
    }
    let string = || Some(Value::String(text.to_owned()));
    match text.as_bytes()[0] {
        first if first.is_ascii_alphabetic() => {
            if is_word(text) {
                return None;
            }
            string()
        }
        b'/' | b'_' => string(),
        b'0'..=b'9' | b'-' => number(text),
        _ => None,
    }
}

/// Something that starts like a number: a whole one, or text that cannot be one.
fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let bytes = digits.as_bytes();
    match bytes.first()? {
        b'0'..=b'9' => {}
        // An argument such as `--port` or `-v`.
        first if *first == b'-' || first.is_ascii_alphabetic() => {
            let marker = text == "---" || text.starts_with("--- ");
            return (!marker).then(|| Value::String(text.to_owned()));
        }
        _ => return None,
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        if (bytes[0] == b'0' && bytes.len() > 1) || bytes.len() > 18 {
            return None;
        }
        return text.parse::<i64>().ok().map(Value::from);
    }
    let twice = |wanted: char| digits.split(wanted).nth(2).is_some();
    // No number has two points or two dashes; only an exponent has a letter, or a number of another base.
    let other_base = bytes[0] == b'0'
        && bytes.get(1).is_some_and(|b| matches!(b.to_ascii_lowercase(), b'x' | b'o' | b'b'));
    let letter = |b: &u8| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E');
    let text_only = twice('.') || twice('-') || (!other_base && bytes.iter().any(letter));
    text_only.then(|| Value::String(text.to_owned()))
}
