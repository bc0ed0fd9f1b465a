//! Which object is it? A key says where it is found, a uid which of those that had the key one after the other.

use std::fmt;
use std::sync::Arc;

/// Where an object is found among those of its kind. Displays as `namespace/name`, or as the name alone for what is in
/// no namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for what is in no namespace.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// What displays as this text: up to the first slash it is the namespace.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() => Self::new(namespace, name),
            _ => Self::new("", text),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            f.write_str(&self.namespace)?;
            f.write_str("/")?;
        }
        f.write_str(&self.name)
    }
}

/// One object at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub key: Key,
    /// Its identity: an object that has the key later is another one. Empty if not known.
    pub uid: Arc<str>,
    /// The write it is as of; `None` if nobody said, or not as a number.
    pub revision: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_displays_with_its_namespace_if_it_has_one() {
        assert_eq!(Key::new("shop", "web").to_string(), "shop/web");
        assert_eq!(Key::new("", "n1").to_string(), "n1");
    }

    #[test]
    fn keys_are_sorted_by_namespace_first() {
        let mut keys = [Key::new("b", "a"), Key::new("a", "b"), Key::new("a", "a"), Key::new("", "z")];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["z", "a/a", "a/b", "b/a"]);
    }

    #[test]
    fn a_key_is_parsed_at_the_first_slash() {
        for (text, namespace, name) in [
            ("shop/web", "shop", "web"),
            ("n1", "", "n1"),
            ("shop/web/main", "shop", "web/main"),
            ("/web", "", "/web"),
            ("shop/", "shop", ""),
            ("", "", ""),
        ] {
            assert_eq!(Key::parse(text), Key::new(namespace, name), "{text:?}");
        }
    }

    proptest! {
        // What was read is written as it was, whatever it is.
        #[test]
        fn a_parsed_key_displays_as_what_was_parsed(text in "[a-z/-]{0,8}") {
            prop_assert_eq!(Key::parse(&text).to_string(), text);
        }

        #[test]
        fn a_displayed_key_is_parsed_as_what_it_was(namespace in "[a-z-]{0,4}", name in "[a-z-]{1,4}") {
            let key = Key::new(namespace, name);
            prop_assert_eq!(Key::parse(&key.to_string()), key);
        }
    }
}
