//! Which fields every message has, under which numbers.
//!
//! The table (`recorded/messages.txt`) is recorded from Kubernetes' Go types by `tests/recorders/apiserver`. Each line
//! is a message, each word a field: `number:json name`, a mark (`?` and `~` leave zero out of JSON, `!` does not), its
//! type, and `=Go name` where that is not the JSON name with a capital.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    /// May be absent, so that zero is a value of its own.
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Message(usize),
    Text,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    /// Bytes that are JSON text.
    Json,
}

/// How a message looks in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As an object of its fields.
    Fields,
    /// RFC 3339 in seconds; the year one is null.
    Time,
    /// RFC 3339 with six decimals; the year one is null.
    Micro,
    /// As the text it wraps.
    Text,
    /// As a number or a text, by its first field.
    Either,
    /// As the JSON it wraps.
    Raw,
    /// As the first of its fields that is there, in the order of the table.
    First,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Empty when its fields are those of the message it is in.
    pub(super) json: &'static str,
    /// Whether zero is left out.
    pub(super) omit: bool,
    pub(super) ty: Type,
    go: Option<&'static str>,
}

impl Field {
    /// Its name in complaints.
    pub(super) fn go(&self) -> String {
        self.go.map_or_else(
            || {
                let mut letters = self.json.chars();
                letters.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(letters).collect()
            },
            str::to_owned,
        )
    }
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) fields: Vec<Field>,
    /// Which of them has which number, counted from one; none is zero.
    places: Vec<u8>,
}

impl Message {
    fn new(name: &'static str, form: Form, fields: Vec<Field>) -> Self {
        let most = fields.iter().map(|field| field.number as usize).max().unwrap_or(0);
        let mut places = vec![0; most + 1];
        for (place, field) in (1..=u8::MAX).zip(&fields) {
            places[field.number as usize] = place;
        }
        Self { name, form, fields, places }
    }

    /// Its name in complaints, without the group that tells two of the same name apart.
    pub(super) fn go(&self) -> &'static str {
        self.name.trim_start_matches(|c: char| c.is_ascii_lowercase())
    }

    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let place = *self.places.get(number as usize)?;
        self.fields.get(usize::from(place.checked_sub(1)?))
    }
}

#[derive(Debug)]
pub(super) struct Table {
    /// By API version and kind.
    roots: HashMap<(&'static str, &'static str), usize>,
    pub(super) messages: Vec<Message>,
}

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::read(include_str!("../../recorded/messages.txt")));

impl Table {
    fn read(text: &'static str) -> Self {
        let lines: Vec<(Form, &str)> = text.lines().filter_map(message_line).collect();
        let names = lines.iter().map(|(_, line)| line.split(' ').next().unwrap_or_default());
        let ids: HashMap<&'static str, usize> = names.enumerate().map(|(id, name)| (name, id)).collect();
        let messages = lines.iter().map(|(form, line)| {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            Message::new(name, *form, words.filter_map(|word| field(word, &ids)).collect())
        });
        let roots = text.lines().filter_map(|line| {
            let (key, name) = line.strip_prefix("root ")?.split_once(' ')?;
            Some((key.rsplit_once('/')?, *ids.get(name)?))
        });
        Self { roots: roots.collect(), messages: messages.collect() }
    }

    /// The message of a kind. Some kinds exist in every group.
    pub(super) fn root(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let id = self.roots.get(&(api_version, kind)).or_else(|| self.roots.get(&("*", kind)))?;
        self.messages.get(*id)
    }
}

fn message_line(line: &'static str) -> Option<(Form, &'static str)> {
    if let Some(rest) = line.strip_prefix("type ") {
        return Some((Form::Fields, rest));
    }
    let (form, rest) = line.strip_prefix("form ")?.split_once(' ')?;
    let form = match form {
        "time" => Form::Time,
        "micro" => Form::Micro,
        "text" => Form::Text,
        "either" => Form::Either,
        "raw" => Form::Raw,
        "first" => Form::First,
        _ => return None,
    };
    Some((form, rest))
}

fn field(word: &'static str, ids: &HashMap<&'static str, usize>) -> Option<Field> {
    let (number, rest) = word.split_once(':')?;
    let at = rest.find(['?', '!', '~'])?;
    let (json, rest) = rest.split_at(at);
    let (mark, rest) = rest.split_at(1);
    let (ty, go) = rest.split_once('=').map_or((rest, None), |(ty, go)| (ty, Some(go)));
    Some(Field { number: number.parse().ok()?, json, omit: mark != "!", ty: type_of(ty, ids)?, go })
}

fn type_of(text: &str, ids: &HashMap<&'static str, usize>) -> Option<Type> {
    let inner = |text: &str| type_of(text, ids).map(Box::new);
    if let Some(rest) = text.strip_prefix('*') {
        return Some(Type::Pointer(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return Some(Type::List(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("{}") {
        return Some(Type::Map(inner(rest)?));
    }
    Some(match text {
        "string" => Type::Text,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "json" => Type::Json,
        name => Type::Message(*ids.get(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let text = include_str!("../../recorded/messages.txt");
        for line in text.lines() {
            let (what, rest) = line.split_once(' ').unwrap();
            if what == "root" {
                let key = rest.split(' ').next().unwrap().rsplit_once('/').unwrap();
                assert!(TABLE.roots.contains_key(&key), "{line}");
                continue;
            }
            let (_, rest) = message_line(line).unwrap();
            let mut words = rest.split(' ');
            let name = words.next().unwrap();
            let message = TABLE.messages.iter().find(|m| m.name == name).unwrap();
            assert_eq!(message.fields.len(), words.count(), "{line}");
            for field in &message.fields {
                assert_eq!(message.field(field.number).unwrap().json, field.json, "{line}");
            }
            assert!(message.field(0).is_none() && message.field(u32::MAX).is_none(), "{line}");
        }
    }
}
