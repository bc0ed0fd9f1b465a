//! Label and field selectors as they stand in a query string.

use crate::builtin::names;
use crate::store::Object;

/// One requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Above(String, i64),
    Below(String, i64),
}

/// A parsed label selector; empty selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

impl Labels {
    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels, looked up by `get`, satisfy every requirement.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => get(key).is_some(),
            Requirement::Absent(key) => get(key).is_none(),
            Requirement::In(key, values) => get(key).is_some_and(|v| values.iter().any(|w| w == v)),
            Requirement::NotIn(key, values) => get(key).is_none_or(|v| values.iter().all(|w| w != v)),
            Requirement::Above(key, bound) => number(get(key)).is_some_and(|n| n > *bound),
            Requirement::Below(key, bound) => number(get(key)).is_some_and(|n| n < *bound),
        })
    }

    /// Parses the string form, for example `app=web,tier in (a, b),!legacy`.
    ///
    /// # Errors
    /// What was found and what was expected, in upstream's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        if tokens.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            match tokens.peek() {
                Token::Word(_) | Token::Bang => {}
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
            let requirement = tokens.requirement();
            requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match tokens.next() {
                Token::End => break,
                Token::Comma => match tokens.peek() {
                    Token::Word(_) | Token::Bang => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
        Ok(Self(requirements))
    }

    /// From the object form (`matchLabels`, `matchExpressions`) used by disruption budgets and workloads.
    /// `None` where it cannot be read: it then selects nothing.
    #[must_use]
    pub fn from_object(selector: &serde_json::Value) -> Option<Self> {
        let mut all = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            all.push(Requirement::In(key.clone(), vec![value.as_str()?.to_owned()]));
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = expression["key"].as_str()?.to_owned();
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(|v| v.as_str()).map(str::to_owned).collect();
            all.push(match expression["operator"].as_str()? {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => return None,
            });
        }
        Some(Self(all))
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Comma,
    Open,
    Close,
    Equals,
    DoubleEquals,
    NotEquals,
    Bang,
    Greater,
    Less,
    End,
}

impl<'a> Token<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Word(word) => word,
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Bang => "!",
            Self::Greater => ">",
            Self::Less => "<",
            Self::End => "",
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> Token<'a> {
        Self { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let symbols = [
            ("==", Token::DoubleEquals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::Bang),
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
            (">", Token::Greater),
            ("<", Token::Less),
        ];
        for (symbol, token) in symbols {
            if let Some(after) = rest.strip_prefix(symbol) {
                self.rest = after;
                return token;
            }
        }
        let end = rest.find(|c: char| " \t\r\n=!(),><".contains(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        if word.is_empty() { Token::End } else { Token::Word(word) }
    }

    fn key(&mut self) -> Result<String, String> {
        match self.next() {
            Token::Word(word) => {
                let problems = names::qualified(word);
                if problems.is_empty() {
                    Ok(word.to_owned())
                } else {
                    Err(format!("<nil>: Invalid value: {word:?}: {}", problems.join("; ")))
                }
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.peek() == Token::Bang {
            self.next();
            return Ok(Requirement::Absent(self.key()?));
        }
        let key = self.key()?;
        match self.peek() {
            Token::End | Token::Comma => return Ok(Requirement::Exists(key)),
            _ => {}
        }
        let operator = self.next();
        match operator {
            Token::Equals | Token::DoubleEquals => {
                let value = self.value(&key)?;
                Ok(Requirement::In(key, vec![value]))
            }
            Token::NotEquals => {
                let value = self.value(&key)?;
                Ok(Requirement::NotIn(key, vec![value]))
            }
            Token::Word("in") => {
                let values = self.values(&key)?;
                Ok(Requirement::In(key, values))
            }
            Token::Word("notin") => {
                let values = self.values(&key)?;
                Ok(Requirement::NotIn(key, values))
            }
            Token::Greater => {
                let bound = self.bound(&key)?;
                Ok(Requirement::Above(key, bound))
            }
            Token::Less => {
                let bound = self.bound(&key)?;
                Ok(Requirement::Below(key, bound))
            }
            other => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        }
    }

    fn value(&mut self, key: &str) -> Result<String, String> {
        match self.peek() {
            // `a=` and `a=,b` ask for the empty value.
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                check_value(key, 0, word)
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn bound(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value(key)?;
        value.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            )
        })
    }

    fn values(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(check_value(key, values.len(), word)?);
                    match self.next() {
                        Token::Comma => {
                            if self.peek() == Token::Close {
                                values.push(String::new());
                            }
                        }
                        Token::Close => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Comma => {
                    values.push(String::new());
                }
                Token::Close => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    break;
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn check_value(key: &str, at: usize, value: &str) -> Result<String, String> {
    let problems = names::label_value(value);
    if problems.is_empty() {
        Ok(value.to_owned())
    } else {
        Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {}", problems.join("; ")))
    }
}

/// A parsed field selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Field, bool, String)>);

/// Which fact of a stored object a requirement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    At(usize),
}

impl Fields {
    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses `a=b,c!=d` over the selectable `fields` of a table; `custom` when a definition names those.
    ///
    /// # Errors
    /// A malformed term, or a field that cannot be selected on.
    pub fn parse(text: &str, fields: &[String], custom: bool) -> Result<Self, String> {
        let mut all = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let (path, equal, value) = split_term(&term)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
            let field = match path {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                other => match fields.iter().position(|f| f == other) {
                    Some(at) => Field::At(at),
                    None if fields.is_empty() && !custom => {
                        return Err(format!(
                            "{other:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                        ));
                    }
                    None => return Err(format!("field label not supported: {other}")),
                },
            };
            all.push((field, equal, unescape(value)?));
        }
        Ok(Self(all))
    }

    /// The value the first selectable field must have, if it must have one; what the store's index is by.
    ///
    /// Absent fields are not in the index, so values that an absent field matches are not looked up there.
    #[must_use]
    pub fn indexed(&self) -> Option<&str> {
        let found = self.0.iter().find(|(field, equal, _)| *field == Field::At(0) && *equal);
        found.map(|(_, _, value)| value.as_str()).filter(|v| !v.is_empty() && *v != "false")
    }

    /// Adds the requirement that the object has this name.
    pub fn require_name(&mut self, name: &str) {
        self.0.push((Field::Name, true, name.to_owned()));
    }

    /// Whether an object satisfies every requirement.
    #[must_use]
    pub fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|(field, equal, value)| {
            let found = match field {
                Field::Name => object.name.as_ref(),
                Field::Namespace => object.namespace.as_deref().unwrap_or_default(),
                // A missing boolean reads as false; other missing fields read as empty.
                Field::At(at) => object.fields.get(*at).map_or("", AsRef::as_ref),
            };
            let same = found == value || (found.is_empty() && value == "false");
            same == *equal
        })
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(last) = terms.last_mut() {
            last.push(c);
        }
    }
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let bytes = term.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'!' if bytes.get(at + 1) == Some(&b'=') => return Some((&term[..at], false, &term[at + 2..])),
            b'=' if bytes.get(at + 1) == Some(&b'=') => return Some((&term[..at], true, &term[at + 2..])),
            b'=' => return Some((&term[..at], true, &term[at + 1..])),
            _ => at += 1,
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => {
                    return Err(format!("invalid field selector: invalid escape sequence: \\{c}"));
                }
                None => {
                    return Err("invalid field selector: unterminated escape sequence".to_owned());
                }
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {c}"));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_match_as_documented() {
        let labels = [("app", "web"), ("tier", "front"), ("rank", "5")];
        let get = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        for (text, want, why) in [
            ("", true, "empty selects everything"),
            ("app=web", true, "equality"),
            ("app==web,tier!=back", true, "both forms, conjunction"),
            ("tier in (front, back)", true, "set membership with blanks"),
            ("tier notin (front)", false, "excluded"),
            ("other notin (x)", true, "absent labels are outside every set"),
            ("app", true, "existence"),
            ("!app", false, "absence"),
            ("rank>4,rank<6", true, "integers compare"),
            ("app>4", false, "a word is no integer"),
            ("other=", false, "an absent label is not the empty value"),
        ] {
            let selector = Labels::parse(text).expect(text);
            assert_eq!(selector.matches(get), want, "{text}: {why}");
        }
    }

    #[test]
    fn malformed_label_selectors_say_what_was_found() {
        for (text, want) in [
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b,", "found '', expected: identifier after ','"),
            ("a in x", "unable to parse requirement: found 'x' expected: '('"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ] {
            assert_eq!(Labels::parse(text).err().as_deref(), Some(want), "{text}");
        }
        assert!(Labels::parse("-a=b").is_err(), "keys are names");
    }

    #[test]
    fn field_selectors_take_only_known_fields() {
        let fields = ["spec.nodeName".to_owned()];
        assert!(Fields::parse("spec.nodeName=n1,metadata.name!=a", &fields, false).is_ok());
        assert_eq!(
            Fields::parse("spec.foo=1", &fields, false).err().as_deref(),
            Some("field label not supported: spec.foo")
        );
        assert_eq!(
            Fields::parse("nonsense", &fields, false).err().as_deref(),
            Some("invalid selector: 'nonsense'; can't understand 'nonsense'")
        );
    }
}
