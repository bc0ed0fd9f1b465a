//! What is at this path of an object?
//!
//! The `JSONPath` dialect of Kubernetes, as far as a printer column or a scale subresource can use it: one expression
//! without braces, for example `.status.conditions[?(@.type=="Ready")].status`. Fields (dots in a name are escaped
//! with a backslash, also inside `['a\.b']`), `[2]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `..`, unions `[0,2]` and filters
//! with one comparison or none. Loops (`range`) are not part of it.

use serde_json::{Number, Value, json};
use std::cmp::Ordering;

/// Results a path may produce before it is given up: `..` twice over a large object grows quickly.
const MOST_RESULTS: usize = 100_000;

/// Why a text is not a path. The words are those Kubernetes uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// The text ends inside an expression, or a line ends there.
    #[error("unclosed action")]
    Unclosed,
    /// `[` without `]`.
    #[error("unterminated array")]
    UnterminatedArray,
    /// `[?(` without `)`.
    #[error("unterminated filter")]
    UnterminatedFilter,
    /// Something other than `]` after a filter.
    #[error("unclosed array expect ]")]
    UnclosedFilter,
    /// A quote that is not closed.
    #[error("unterminated quoted string")]
    UnterminatedQuote,
    /// A quoted string with an escape that does not exist.
    #[error("unquote string {0} error invalid syntax")]
    BadQuote(String),
    /// Neither an index, a slice, a quoted key nor a union.
    #[error("invalid array index {0}")]
    BadIndex(String),
    /// An index that is too large.
    #[error("array index {0} is not a number")]
    HugeIndex(String),
    /// Digits that make no number.
    #[error("cannot parse number {0}")]
    BadNumber(String),
    /// `..` twice in a row.
    #[error("invalid multiple recursive descent")]
    DoubleDescent,
    /// A character that starts nothing.
    #[error("unrecognized character in action: {0:?}")]
    Unexpected(char),
    /// Braces belong to templates; a path is one expression.
    #[error("unexpected template delimiter")]
    Template,
}

/// Why a path could not be followed. A field that is not there is no error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FindError {
    /// An index into something without elements.
    #[error("not an array or slice")]
    NotArray,
    /// An index or a slice beyond the end.
    #[error("array index out of bounds")]
    OutOfBounds,
    /// A slice that would never move on.
    #[error("step must be > 0")]
    Step,
    /// Two values of different types, or of types that cannot be compared.
    #[error("incompatible types for comparison")]
    Incomparable,
    /// A filter whose side is several values.
    #[error("can only compare one element at a time")]
    Several,
    /// An operator that does not exist.
    #[error("unrecognized filter operator {0}")]
    Operator(String),
    /// A word that is no keyword here.
    #[error("unrecognized identifier {0}")]
    Identifier(String),
    /// The path matches too much.
    #[error("more than {MOST_RESULTS} results")]
    TooMany,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Slice { from: Option<i64>, to: End, by: Option<i64> },
    Wildcard,
    Descent,
    Union(Vec<Vec<Step>>),
    Filter { left: Vec<Step>, test: Option<(String, Vec<Step>)> },
    Literal(Value),
    Identifier(String),
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Open,
    At(i64),
    /// A lone index is a slice of length one.
    Next,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

impl Path {
    /// Parses an expression without braces.
    ///
    /// # Errors
    /// The first place that makes no sense.
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { steps: Parser { text, at: 0 }.steps()? })
    }

    /// Every value the path leads to, in order; members of a map come sorted by key.
    ///
    /// # Errors
    /// When a step cannot be taken, such as an index beyond the end.
    pub(crate) fn find<'a>(&'a self, root: &'a Value) -> Result<Vec<&'a Value>, FindError> {
        follow(&self.steps, vec![root])
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

fn ends_name(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn steps(mut self) -> Result<Vec<Step>, ParseError> {
        let mut steps = Vec::new();
        loop {
            if self.skip("[?(") {
                steps.push(self.filter()?);
                continue;
            }
            if self.skip("..") {
                if steps.last() == Some(&Step::Descent) {
                    return Err(ParseError::DoubleDescent);
                }
                steps.push(Step::Descent);
                if self.rest().chars().next().is_some_and(|c| c == '_' || c.is_alphanumeric()) {
                    steps.push(self.field());
                }
                continue;
            }
            let start = self.at;
            match self.next() {
                None => return Ok(steps),
                Some('\r' | '\n') => return Err(ParseError::Unclosed),
                Some('{' | '}') => return Err(ParseError::Template),
                Some(' ' | '@' | '$') => {}
                Some('[') => steps.extend(self.array()?),
                Some('.') => steps.push(self.field()),
                Some(quote @ ('"' | '\'')) => steps.push(self.quoted(start, quote)?),
                Some(c) if c == '+' || c == '-' || c.is_numeric() => {
                    let rest = self.rest();
                    let end = rest.find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(rest.len());
                    self.at += end;
                    steps.push(Step::Literal(number(&self.text[start..self.at])?));
                }
                Some(c) if c == '_' || c.is_alphabetic() => {
                    self.at = start;
                    let end = self.rest().find(ends_name).unwrap_or(self.rest().len());
                    self.at += end;
                    steps.push(match &self.text[start..self.at] {
                        "true" => Step::Literal(Value::Bool(true)),
                        "false" => Step::Literal(Value::Bool(false)),
                        word => Step::Identifier(word.to_owned()),
                    });
                }
                Some(c) => return Err(ParseError::Unexpected(c)),
            }
        }
    }

    /// The name after a dot. A backslash takes the next character as it is.
    fn field(&mut self) -> Step {
        let start = self.at;
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if ends_name(c) {
                self.at -= c.len_utf8();
                break;
            }
        }
        match &self.text[start..self.at] {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        }
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<Step, ParseError> {
        loop {
            let before = self.text[..self.at].chars().next_back();
            match self.next() {
                None | Some('\n') => return Err(ParseError::UnterminatedQuote),
                Some(c) if c == quote && before != Some('\\') => break,
                Some(_) => {}
            }
        }
        let whole = &self.text[start..self.at];
        let inner = &whole[1..whole.len() - 1];
        let text = unescape(inner, quote).ok_or_else(|| ParseError::BadQuote(whole.to_owned()))?;
        Ok(Step::Literal(Value::String(text)))
    }

    fn array(&mut self) -> Result<Vec<Step>, ParseError> {
        let rest = self.rest();
        let end = rest.find([']', '\n']).ok_or(ParseError::UnterminatedArray)?;
        if rest[end..].starts_with('\n') {
            return Err(ParseError::UnterminatedArray);
        }
        self.at += end + 1;
        selection(&rest[..end])
    }

    /// The scan knows one quoted string per filter; a closing parenthesis inside it does not count.
    fn filter(&mut self) -> Result<Step, ParseError> {
        let start = self.at;
        let (mut open, mut closed) = (None, false);
        loop {
            let before = self.text[..self.at].chars().next_back();
            match (self.next(), open) {
                (None | Some('\n'), _) => return Err(ParseError::UnterminatedFilter),
                (Some(quote @ ('"' | '\'')), None) => open = Some(quote),
                (Some(c), Some(quote)) if c == quote && before != Some('\\') => closed = true,
                (Some(')'), _) if open.is_some() == closed => break,
                (Some(_), _) => {}
            }
        }
        let text = &self.text[start..self.at - 1];
        if self.next() != Some(']') {
            return Err(ParseError::UnclosedFilter);
        }
        let parse = |text| Parser { text, at: 0 }.steps();
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let (left, tail) = text.split_at(text.find(is_operator).unwrap_or(text.len()));
        let right = tail.trim_start_matches(is_operator);
        let operator = &tail[..tail.len() - right.len()];
        Ok(match (left, operator, right) {
            ("", ..) | (_, "", _) => Step::Filter { left: parse(text)?, test: None },
            (_, operator, "") if operator.len() == 1 => Step::Filter { left: parse(text)?, test: None },
            (_, operator, "") => {
                return Err(ParseError::Unexpected(operator.chars().next_back().unwrap_or('=')));
            }
            _ => Step::Filter { left: parse(left)?, test: Some((operator.to_owned(), parse(right)?)) },
        })
    }
}

/// What stands between brackets.
fn selection(text: &str) -> Result<Vec<Step>, ParseError> {
    if text.contains(',') {
        let parts: Result<Vec<Vec<Step>>, ParseError> =
            text.split(',').map(|part| selection(part.trim_matches(' '))).collect();
        return Ok(vec![Step::Union(parts?)]);
    }
    if let Some(key) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''))
        && !key.contains('\'')
    {
        return Parser { text: &format!(".{key}"), at: 0 }.steps();
    }
    let text = if text == "*" { ":" } else { text };
    let bad = || ParseError::BadIndex(text.to_owned());
    let parts: Vec<&str> = text.split(':').collect();
    let mut bounds = [None; 3];
    if parts.len() > bounds.len() {
        return Err(bad());
    }
    for (bound, part) in bounds.iter_mut().zip(&parts) {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        if !part.is_empty() {
            *bound = Some(part.parse().map_err(|_| ParseError::HugeIndex((*part).to_owned()))?);
        }
    }
    let to = match (parts.len(), bounds[1]) {
        (1, _) => End::Next,
        (_, Some(end)) => End::At(end),
        (_, None) => End::Open,
    };
    Ok(vec![Step::Slice { from: bounds[0], to, by: bounds[2] }])
}

fn number(text: &str) -> Result<Value, ParseError> {
    let bad = || ParseError::BadNumber(text.to_owned());
    if let Ok(int) = text.parse::<i64>() {
        return Ok(json!(int));
    }
    let float: f64 = text.parse().map_err(|_| bad())?;
    // Kept apart from integers, as Go does: 1.0 is a float and compares with floats only.
    Number::from_f64(float).map(Value::Number).ok_or_else(bad)
}

/// Go's escapes inside quotes; `None` for one that does not exist.
fn unescape(text: &str, quote: char) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(escape(&mut chars, quote)?);
    }
    Some(out)
}

fn escape(chars: &mut std::str::Chars<'_>, quote: char) -> Option<char> {
    let hex = |chars: &mut std::str::Chars<'_>, digits: usize| {
        let text: String = chars.by_ref().take(digits).collect();
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| u32::from_str_radix(&text, 16).ok())
            .flatten()
            .and_then(char::from_u32)
    };
    Some(match chars.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        'x' => hex(chars, 2)?,
        'u' => hex(chars, 4)?,
        'U' => hex(chars, 8)?,
        c if c == quote => c,
        _ => return None,
    })
}

type Found<'a> = Vec<&'a Value>;

fn follow<'a>(steps: &'a [Step], start: Found<'a>) -> Result<Found<'a>, FindError> {
    steps.iter().try_fold(start, |current, step| {
        let next = take(step, &current)?;
        if next.len() > MOST_RESULTS { Err(FindError::TooMany) } else { Ok(next) }
    })
}

/// Elements of a list, or members of a map by key.
fn children(value: &Value) -> Found<'_> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            members.into_iter().map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    }
}

fn take<'a>(step: &'a Step, current: &[&'a Value]) -> Result<Found<'a>, FindError> {
    let mut out = Vec::new();
    match step {
        Step::Field(name) => out.extend(current.iter().filter_map(|value| match value {
            Value::Object(map) => map.get(name),
            _ => None,
        })),
        Step::Wildcard => out.extend(current.iter().flat_map(|value| children(value))),
        Step::Descent => {
            for value in current {
                descend(value, &mut out)?;
            }
        }
        Step::Union(parts) => {
            for part in parts {
                out.extend(follow(part, current.to_vec())?);
            }
        }
        Step::Slice { from, to, by } => {
            for value in current.iter().filter(|value| !value.is_null()) {
                if slice(value, (*from, *to, *by), &mut out)? == Slice::Empty {
                    break;
                }
            }
        }
        Step::Filter { left, test } => {
            for value in current {
                let Value::Array(list) = value else { return Err(FindError::NotArray) };
                for item in list {
                    if passes(item, left, test.as_ref())? {
                        out.push(item);
                    }
                }
            }
        }
        // A quoted string stands for itself once; other literals replace every value so far.
        Step::Literal(text @ Value::String(_)) => out.push(text),
        Step::Literal(value) => out.extend(current.iter().map(|_| value)),
        Step::Identifier(word) => return Err(FindError::Identifier(word.clone())),
    }
    Ok(out)
}

/// The value and everything below it that has members itself.
fn descend<'a>(value: &'a Value, out: &mut Found<'a>) -> Result<(), FindError> {
    let below = children(value);
    if below.is_empty() {
        return Ok(());
    }
    if out.len() >= MOST_RESULTS {
        return Err(FindError::TooMany);
    }
    out.push(value);
    below.iter().try_for_each(|child| descend(child, out))
}

#[derive(PartialEq, Eq)]
enum Slice {
    Taken,
    Empty,
}

/// An empty slice ends the whole step, wherever it comes up.
fn slice<'a>(
    value: &'a Value,
    (from, to, by): (Option<i64>, End, Option<i64>),
    out: &mut Found<'a>,
) -> Result<Slice, FindError> {
    let Value::Array(list) = value else { return Err(FindError::NotArray) };
    let length = i64::try_from(list.len()).map_err(|_| FindError::OutOfBounds)?;
    let counted = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let first = counted(from.unwrap_or(0));
    let end = match to {
        End::Open => length,
        End::At(end) => counted(end),
        End::Next => first.saturating_add(1),
    };
    if end == first {
        return Ok(Slice::Empty);
    }
    if !(0..length).contains(&first) || end > length || end < first {
        return Err(FindError::OutOfBounds);
    }
    let step = match by.map(usize::try_from) {
        None => 1,
        Some(Ok(step @ 1..)) => step,
        Some(_) => return Err(FindError::Step),
    };
    let (Ok(first), Ok(end)) = (usize::try_from(first), usize::try_from(end)) else {
        return Err(FindError::OutOfBounds);
    };
    out.extend(list[first..end].iter().step_by(step));
    Ok(Slice::Taken)
}

fn passes<'a>(
    item: &'a Value,
    left: &'a [Step],
    test: Option<&'a (String, Vec<Step>)>,
) -> Result<bool, FindError> {
    let side = |steps: &'a [Step]| follow(steps, vec![item]);
    let Some((operator, right)) = test else {
        return Ok(side(left).is_ok_and(|found| !found.is_empty()));
    };
    let (lefts, rights) = match side(left)? {
        lefts if lefts.is_empty() => return Ok(false),
        lefts => (lefts, side(right)?),
    };
    match (lefts.as_slice(), rights.as_slice()) {
        ([left], [right]) => compare(operator, left, right),
        (_, []) => Ok(false),
        _ => Err(FindError::Several),
    }
}

/// Integers, floats, strings and booleans compare with their own kind only; booleans have no order.
fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, FindError> {
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => match operator {
            "==" => return Ok(a == b),
            "!=" => return Ok(a != b),
            _ => return Err(FindError::Incomparable),
        },
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64(), a.as_f64(), b.as_f64()) {
            (Some(a), Some(b), ..) => Some(a.cmp(&b)),
            (None, None, Some(a), Some(b)) => a.partial_cmp(&b),
            _ => return Err(FindError::Incomparable),
        },
        _ => return Err(FindError::Incomparable),
    };
    match operator {
        "==" => Ok(order == Some(Ordering::Equal)),
        "!=" => Ok(order != Some(Ordering::Equal)),
        "<" => Ok(order == Some(Ordering::Less)),
        "<=" => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        ">" => Ok(order == Some(Ordering::Greater)),
        ">=" => Ok(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
        other => Err(FindError::Operator(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object() -> Value {
        json!({
            "spec": {
                "name": "web", "replicas": 3, "ratio": 0.5, "none": null,
                "a.b/c": "dotted", "list": [10, 20, 30], "empty": [],
            },
            "status": { "conditions": [
                { "type": "Ready", "status": "True", "since": 5 },
                { "type": "Disk (full)", "status": "False", "since": 7, "note": "it's" },
            ] },
        })
    }

    #[test]
    fn paths_lead_to_values() {
        for (path, expected, reason) in [
            (".spec.name", json!(["web"]), "dotted fields"),
            ("$.spec.name", json!(["web"]), "the root may be named"),
            (".spec['name']", json!(["web"]), "quoted field"),
            (r".spec['a\.b/c']", json!(["dotted"]), "dots are escaped inside quotes too"),
            (r".spec.a\.b/c", json!(["dotted"]), "and outside"),
            (".spec['a.b/c']", json!([]), "an unescaped dot separates fields, even inside quotes"),
            (".spec.missing.deeper", json!([]), "a missing field is nothing"),
            (".spec.name.deeper", json!([]), "a field of a string is nothing"),
            (".spec.none", json!([null]), "null is a value"),
            (".spec.list", json!([[10, 20, 30]]), "a list as a whole"),
            (".spec.list[0]", json!([10]), "index"),
            (".spec.list[-1]", json!([30]), "from the end"),
            (".spec.list[*]", json!([10, 20, 30]), "all"),
            (".spec.list[1:]", json!([20, 30]), "open slice"),
            (".spec.list[0:2]", json!([10, 20]), "closed slice"),
            (".spec.list[::2]", json!([10, 30]), "stepped slice"),
            (".spec.list[0, 2]", json!([10, 30]), "union"),
            (".spec.empty[*]", json!([]), "all of nothing"),
            (".spec.none[0]", json!([]), "an index into null is skipped"),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"]), "filter by equality"),
            (".status.conditions[?(@.type == 'Ready')].status", json!(["True"]), "spaces, single quotes"),
            (".status.conditions[?(@.type!='Ready')].status", json!(["False"]), "filter by difference"),
            (".status.conditions[?(@.type=='Disk (full)')].since", json!([7]), "parenthesis in quotes"),
            (".status.conditions[?(@.since>5)].type", json!(["Disk (full)"]), "numbers"),
            (".status.conditions[?(@.since<=5)].type", json!(["Ready"]), "numbers, with equality"),
            (".status.conditions[?(@.note)].since", json!([7]), "filter by presence"),
            (".status.conditions[?(@.note=='it\\'s')].since", json!([7]), "escaped quote"),
            (
                ".status.conditions[?(@.note=='x')].since",
                json!([]),
                "absent on one item, different on the other",
            ),
            ("..since", json!([5, 7]), "anywhere"),
            (".status.*[0].type", json!(["Ready"]), "any field"),
        ] {
            let parsed = Path::parse(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let object = object();
            let found: Vec<Value> =
                parsed.find(&object).unwrap_or_else(|e| panic!("{path}: {e}")).into_iter().cloned().collect();
            assert_eq!(Value::Array(found), expected, "{path}: {reason}");
        }
    }

    #[test]
    fn steps_that_cannot_be_taken_are_errors() {
        for (path, expected, reason) in [
            (".spec.list[3]", FindError::OutOfBounds, "beyond the end"),
            (".spec.list[-4]", FindError::OutOfBounds, "beyond the start"),
            (".spec.list[2:1]", FindError::OutOfBounds, "backwards"),
            (".spec.list[0:2:0]", FindError::Step, "a step of zero"),
            (".spec.name[0]", FindError::NotArray, "index into a string"),
            (".spec.name[?(@.x==1)]", FindError::NotArray, "filter of a string"),
            (".status.conditions[?(@.since=='5')]", FindError::Incomparable, "number and string"),
            (".status.conditions[?(@.since==5.0)]", FindError::Incomparable, "integer and float"),
            (".status.conditions[?(@.since=>5)]", FindError::Operator("=>".to_owned()), "no such operator"),
            ("range .spec", FindError::Identifier("range".to_owned()), "loops need a template"),
        ] {
            let parsed = Path::parse(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert_eq!(parsed.find(&object()), Err(expected), "{path}: {reason}");
        }
    }

    #[test]
    fn texts_that_are_no_paths_are_errors() {
        for (path, expected, reason) in [
            (".spec.list[0", ParseError::UnterminatedArray, "no bracket"),
            (".spec.list[x]", ParseError::BadIndex("x".to_owned()), "a bare word is no index"),
            (".spec[\"name\"]", ParseError::BadIndex("\"name\"".to_owned()), "keys take single quotes"),
            (
                ".a[99999999999999999999]",
                ParseError::HugeIndex("99999999999999999999".to_owned()),
                "too large",
            ),
            (".a[?(@.b==1]", ParseError::UnterminatedFilter, "no parenthesis"),
            (".a[?(@.b==1)", ParseError::UnclosedFilter, "no bracket after a filter"),
            (".a[?(@.b==)]", ParseError::Unexpected('='), "nothing to compare with"),
            ("....a", ParseError::DoubleDescent, "descent twice"),
            (".a\n.b", ParseError::Unclosed, "two lines"),
            (".a}{.b", ParseError::Template, "two expressions"),
            ("'open", ParseError::UnterminatedQuote, "no closing quote"),
            (r"'\q'", ParseError::BadQuote(r"'\q'".to_owned()), "no such escape"),
            ("1.2.3", ParseError::BadNumber("1.2.3".to_owned()), "two points"),
            ("#", ParseError::Unexpected('#'), "starts nothing"),
        ] {
            assert_eq!(Path::parse(path), Err(expected), "{path}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in r#"[.\[\]?(@)*'"=!<>a-c0-2,: \\$-]{0,24}|\PC{0,16}"#) {
            crate::fuzz::fuzz_jsonpath(text.as_bytes());
        }

        #[test]
        fn any_key_is_found_once_its_special_characters_are_escaped(key in "[a-z./,@$]{1,12}") {
            let object = json!({ key.clone(): 1 });
            let escaped: String = key.chars().flat_map(|c| ['\\', c]).collect();
            let path = Path::parse(&format!(".{escaped}")).unwrap();
            prop_assert_eq!(path.find(&object).unwrap().len(), 1);
        }
    }
}
