//! Reads the one-line form of a label selector, accepting what Kubernetes accepts.
//!
//! `in` and `notin` are words like any other unless an operator is due: `in in (in)` is a selector. A zero
//! byte ends a word or sign; anywhere else it ends the text. That is how Kubernetes reads it.

use super::{Error, Expected, Op, Requirement, check_key};

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'a str),
    End,
}

impl Token<'_> {
    fn starts_condition(self) -> bool {
        matches!(self, Self::Word(_) | Self::Sign("!"))
    }
}

/// The conditions of a selector text, in the order written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut parser = Parser { text, at: 0, next: Token::End };
    parser.take();
    let mut out = Vec::new();
    while parser.next != Token::End {
        if !parser.next.starts_condition() {
            return Err(parser.expected(parser.next, Expected::Condition));
        }
        out.push(parser.requirement()?);
        match parser.take() {
            Token::End => break,
            Token::Sign(",") if parser.next.starts_condition() => {}
            Token::Sign(",") => return Err(parser.expected(parser.next, Expected::ConditionAfterComma)),
            other => return Err(parser.expected(other, Expected::AfterCondition)),
        }
    }
    Ok(out)
}

struct Parser<'a> {
    text: &'a str,
    /// Where the token after `next` starts.
    at: usize,
    next: Token<'a>,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Token<'a> {
        let next = self.lex();
        std::mem::replace(&mut self.next, next)
    }

    fn lex(&mut self) -> Token<'a> {
        let bytes = self.text.as_bytes();
        let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
        let sign = |b: &u8| matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
        let rest = |at: usize| bytes.get(at..).unwrap_or_default();
        self.at += rest(self.at).iter().take_while(|b| space(b)).count();
        let start = self.at;
        match bytes.get(start) {
            None => Token::End,
            Some(0) => {
                self.at += 1;
                Token::End
            }
            Some(b) if sign(b) => {
                let two = rest(start).starts_with(b"==") || rest(start).starts_with(b"!=");
                self.at += if two { 2 } else { 1 };
                let sign = &self.text[start..self.at];
                self.at += usize::from(bytes.get(self.at) == Some(&0));
                Token::Sign(sign)
            }
            Some(_) => {
                self.at += rest(start).iter().take_while(|b| !space(b) && !sign(b) && **b != 0).count();
                let word = &self.text[start..self.at];
                self.at += usize::from(bytes.get(self.at) == Some(&0));
                Token::Word(word)
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Error> {
        let mut token = self.take();
        let absent = token == Token::Sign("!");
        if absent {
            token = self.take();
        }
        let Token::Word(key) = token else {
            return Err(self.expected(token, Expected::Key));
        };
        check_key(key).map_err(|problem| Error::Key { key: key.into(), problem })?;
        if absent {
            return Requirement::new(key, Op::DoesNotExist, Vec::new());
        }
        if matches!(self.next, Token::End | Token::Sign(",")) {
            return Requirement::new(key, Op::Exists, Vec::new());
        }
        let op = match self.take() {
            Token::Word("in") => Op::In,
            Token::Word("notin") => Op::NotIn,
            Token::Sign("=") => Op::Equals,
            Token::Sign("==") => Op::DoubleEquals,
            Token::Sign("!=") => Op::NotEquals,
            Token::Sign(">") => Op::Gt,
            Token::Sign("<") => Op::Lt,
            other => return Err(self.expected(other, Expected::Operator)),
        };
        let mut values = if matches!(op, Op::In | Op::NotIn) { self.set()? } else { vec![self.one()?] };
        values.sort_unstable();
        values.dedup();
        Requirement::new(key, op, values)
    }

    /// One value, which may be left out: `a=` asks for an empty one.
    fn one(&mut self) -> Result<String, Error> {
        if matches!(self.next, Token::End | Token::Sign(",")) {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.into()),
            other => Err(self.expected(other, Expected::Value)),
        }
    }

    /// Values in parentheses; any of them may be left out.
    fn set(&mut self) -> Result<Vec<String>, Error> {
        let open = self.take();
        if open != Token::Sign("(") {
            return Err(self.expected(open, Expected::Open));
        }
        let mut values = Vec::new();
        let mut missing = Expected::FirstOfSet;
        loop {
            let mut due = missing;
            let value = if let Token::Word(value) = self.next {
                self.take();
                due = Expected::AfterValue;
                value
            } else {
                ""
            };
            values.push(value.into());
            match self.take() {
                Token::Sign(")") => return Ok(values),
                Token::Sign(",") => missing = Expected::NextOfSet,
                other => return Err(self.expected(other, due)),
            }
        }
    }

    fn expected(&self, found: Token<'_>, expected: Expected) -> Error {
        let found = match found {
            Token::Word(text) | Token::Sign(text) => Some(text.into()),
            Token::End => None,
        };
        Error::Parse { text: self.text.into(), found, expected }
    }
}
