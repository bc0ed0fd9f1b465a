//! Which fields match? Field selectors over what the store remembers of an object.

use crate::store::Object;

/// A parsed field selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(Field, bool, String)>);

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
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses `a=b,c!=d` over the selectable `fields` of a table; `custom` when a definition names those.
    ///
    /// # Errors
    /// A malformed term, or a field that cannot be selected on.
    pub(crate) fn parse(text: &str, fields: &[String], custom: bool) -> Result<Self, String> {
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
    pub(crate) fn indexed(&self) -> Option<&str> {
        let found = self.0.iter().find(|(field, equal, _)| *field == Field::At(0) && *equal);
        found.map(|(_, _, value)| value.as_str()).filter(|v| !v.is_empty() && *v != "false")
    }

    /// Adds the requirement that the object has this name.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.0.push((Field::Name, true, name.to_owned()));
    }

    /// Whether an object satisfies every requirement.
    #[must_use]
    pub(crate) fn matches(&self, object: &Object) -> bool {
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
