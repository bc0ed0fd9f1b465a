//! How much may a condition say? Definitions of conditions limit their message, and a server refuses a status with a longer one: then
//! nothing would be told at all.

use std::borrow::Cow;

/// The longest message, in characters, as every `metav1.Condition` is defined.
pub const LONGEST_MESSAGE: usize = 32_768;

/// What is told of a message: all of it, or its beginning.
#[must_use]
pub fn message(text: &str) -> Cow<'_, str> {
    // Never more characters than bytes.
    if text.len() <= LONGEST_MESSAGE {
        return text.into();
    }
    let end = text.floor_char_boundary(LONGEST_MESSAGE - '…'.len_utf8());
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_as_it_is_or_cut_between_two_characters() {
        let longest = "x".repeat(LONGEST_MESSAGE);
        assert_eq!(message(&longest), longest);
        let told = message(&"ä".repeat(LONGEST_MESSAGE)).into_owned();
        assert!(told.ends_with("ä…") && told.len() <= LONGEST_MESSAGE, "{} bytes", told.len());
        assert!(told.len() > LONGEST_MESSAGE - 4, "{} bytes", told.len());
        assert_eq!(message(&told), told, "what was told is told again");
    }
}
