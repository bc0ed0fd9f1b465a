//! What does the text of a kernel's file say? Lines that are whole, numbers that can be.

use crate::qos::level::Level;

/// More than any counter gets to: what is printed above is a negative number in disguise.
const MOST: u64 = i64::MAX as u64;

/// The lines that are there to their end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

/// A whole number that a counter can have: digits and nothing else, below 2⁶³.
pub(crate) fn counter(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= MOST)
}

/// All of a line, if there are at least so many and the first so many are counters.
pub(crate) fn counters(line: &str, least: usize) -> Option<Vec<u64>> {
    let all: Vec<u64> = line.split_ascii_whitespace().take(least).map(counter).collect::<Option<_>>()?;
    (all.len() == least).then_some(all)
}

/// The value of a line such as `usage_usec 2000`, or `MemTotal: 2000 kB` for `MemTotal:`. None if it is not there, there twice, or
/// there is more in the line.
pub(crate) fn named(text: &str, name: &str) -> Option<u64> {
    // Looked at for every pod in every cycle: most lines end at their first byte.
    let mut of_it = lines(text).filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let (rest, None) = (of_it.next()?, of_it.next()) else { return None };
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().and_then(counter);
    let alone = matches!((words.next(), words.next()), (None | Some("kB"), None));
    value.filter(|_| alone)
}

/// A number such as `5.21`, exactly: digits, and a point with one to nine more. None past a million million million.
pub(crate) fn decimal(text: &str) -> Option<Level> {
    const PLACES: usize = 9;
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > PLACES || whole.len() > 18 {
        return None;
    }
    let units: i128 = whole.parse().ok()?;
    let billionths: i128 = format!("{part:0<PLACES$}").parse().ok()?;
    Some(Level::from_nano(units * 1_000_000_000 + billionths))
}

/// Who waits: somebody, or everybody at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// At least one task.
    Some,
    /// All that are not idle, so that nothing gets done.
    Full,
}

/// How much is waited for a resource, as `/proc/pressure` and the `*.pressure` files of cgroups say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Percent of the last ten seconds.
    pub avg10: Level,
    /// Microseconds since the beginning.
    pub total_us: u64,
}

/// Reads `some avg10=1.50 avg60=0.90 avg300=0.20 total=123456`. More than all of the time is no measurement, and a line a kernel
/// does not have (`full` of CPU before 5.13) is none either.
#[must_use]
pub fn stalled(text: &str, who: Stall) -> Option<Stalled> {
    let word = match who {
        Stall::Some => "some",
        Stall::Full => "full",
    };
    let mut line = lines(text).find(|line| line.split(' ').next() == Some(word))?.split(' ').skip(1);
    let avg10 = decimal(line.next()?.strip_prefix("avg10=")?)?;
    let total_us = counter(line.nth(2)?.strip_prefix("total=")?)?;
    (avg10 <= Level::whole(100)).then_some(Stalled { avg10, total_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_counted_is_a_counter() {
        for (text, expected) in [
            ("0", Some(0)),
            ("18", Some(18)),
            ("9223372036854775807", Some(MOST)),
            // 2⁶³, 2⁶⁴−1 (that is −1) and 2⁶⁴.
            ("9223372036854775808", None),
            ("18446744073709551615", None),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("NaN", None),
            ("max", None),
            ("", None),
            (" 1", None),
            ("١", None),
        ] {
            assert_eq!(counter(text), expected, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, expected) in [
            ("5.21", Some(5_210_000_000)),
            ("0.00", Some(0)),
            ("100", Some(100_000_000_000)),
            ("0.000000001", Some(1)),
            // Finer than a billionth, or more than there can be of anything: nobody prints that.
            ("0.0000000001", None),
            ("18446744073709551616.0", None),
            ("-0.5", None),
            ("1e3", None),
            ("nan", None),
            ("inf", None),
            (".5", None),
            ("5.", None),
            ("5.2.1", None),
            ("", None),
        ] {
            assert_eq!(decimal(text).map(Level::nano), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_without_its_end_is_not_believed() {
        assert_eq!(lines("a 1\nb 2\n").collect::<Vec<_>>(), ["a 1", "b 2"]);
        assert_eq!(lines("a 1\nb 2").collect::<Vec<_>>(), ["a 1"], "that may have been 25");
        assert_eq!(lines("").count(), 0);
        assert_eq!(named("a 1\nb 2\n", "b"), Some(2));
        assert_eq!(named("a 1\nb 2", "b"), None);
        assert_eq!(named("b 1\nb 2\n", "b"), None, "one of them is wrong");
        assert_eq!(named("bb 1\n", "b"), None);
        assert_eq!(named("b\n", "b"), None);
        assert_eq!(named("b: 3 kB\n", "b:"), Some(3));
        assert_eq!(named("b 3 4\n", "b"), None, "two lines that lost what was between them");
    }

    #[test]
    fn pressure_is_a_share_of_the_time() {
        let text = "some avg10=91.09 avg60=84.66 avg300=56.03 total=309962551\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let some = stalled(text, Stall::Some).unwrap();
        assert_eq!((some.avg10, some.total_us), (Level::from_nano(91_090_000_000), 309_962_551));
        assert_eq!(stalled(text, Stall::Full).unwrap().avg10, Level::ZERO, "nobody waits: that is measured");
        for (text, why) in [
            ("", "empty"),
            ("some avg10=1.00 avg60=0.00 avg300=0.00 total=1", "cut"),
            ("full avg10=1.00 avg60=0.00 avg300=0.00 total=1\n", "no such line"),
            ("some avg10=100.01 avg60=0.00 avg300=0.00 total=1\n", "more than all of the time"),
            ("some avg10=nan avg60=0.00 avg300=0.00 total=1\n", "no number"),
            ("some avg10=-1.00 avg60=0.00 avg300=0.00 total=1\n", "negative"),
            ("some avg60=1.00 avg10=0.00 avg300=0.00 total=1\n", "another order"),
            ("some avg10=1.00 avg60=0.00\n", "fields are missing"),
            ("\u{0}\u{1}\u{2}\n", "binary"),
        ] {
            assert_eq!(stalled(text, Stall::Some), None, "{why}");
        }
    }
}
