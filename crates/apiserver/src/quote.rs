//! A string as Go's `%q` prints it.

use std::fmt::Write as _;

/// In double quotes, with everything escaped that cannot be seen.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            ' '..='~' => out.push(c),
            _ => hidden(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// What is not plain text; it may still be a letter of some language.
fn hidden(out: &mut String, c: char) {
    // After a letter: there, a mark that combines with it can be seen.
    let seen = format!("a{c}").escape_debug().count() == 2;
    // Writing to a string cannot fail.
    let _ = match u32::from(c) {
        _ if seen => out.write_char(c),
        code @ ..0x80 => write!(out, "\\x{code:02x}"),
        code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, want) in [
            ("plain text", r#""plain text""#),
            (r#"a "b" \c"#, r#""a \"b\" \\c""#),
            ("\x07\x08\t\n\x0b\x0c\r", r#""\a\b\t\n\v\f\r""#),
            ("\0\x1b\x7f", r#""\x00\x1b\x7f""#),
            ("é 日 e\u{301}", "\"é 日 e\u{301}\""),
            ("\u{a0}\u{200b}\u{e0001}", r#""\u00a0\u200b\U000e0001""#),
        ] {
            assert_eq!(quoted(text), want);
        }
    }
}
