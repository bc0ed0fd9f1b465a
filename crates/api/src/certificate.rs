//! From when to when is a certificate good? The two times of X.509, and nothing else of it.

use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT`: the version, if it is not the first.
const VERSION: u8 = 0xa0;

/// From when to when the certificate is good, given in DER.
///
/// # Errors
/// When it is no certificate.
pub fn validity(der: &[u8]) -> Result<(Timestamp, Timestamp), String> {
    read(der).ok_or_else(|| "expected an X.509 certificate".to_owned())
}

/// ```text
/// Certificate    ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version, serial, signature, issuer, validity, … }, … }
/// Validity       ::= SEQUENCE { notBefore Time, notAfter Time }
/// ```
fn read(der: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (body, _) = expect(certificate, SEQUENCE)?;
    let (tag, _, after) = element(body)?;
    let mut rest = if tag == VERSION { after } else { body };
    for _ in ["serial", "signature", "issuer"] {
        rest = element(rest)?.2;
    }
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (tag, since, rest) = element(validity)?;
    let since = time(tag, since)?;
    let (tag, until, _) = element(rest)?;
    Some((since, time(tag, until)?))
}

/// Tag, content and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, mut rest) = rest.split_first()?;
    let mut length = usize::from(*first);
    if *first >= 0x80 {
        let count = usize::from(first & 0x7f);
        // Longer than four bytes no certificate is; none at all would be without an end.
        if !(1..=4).contains(&count) {
            return None;
        }
        let (bytes, after) = rest.split_at_checked(count)?;
        length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((*tag, content, after))
}

fn expect(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(der)?;
    (tag == wanted).then_some((content, rest))
}

/// `YYMMDDHHMMSSZ` up to the year 2049, `YYYYMMDDHHMMSSZ` from then on.
fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 || !rest.bytes().all(|byte| byte.is_ascii_digit()) || !(0..=9999).contains(&year) {
        return None;
    }
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let day = jiff::civil::Date::new(year, part(0)?, part(2)?).ok()?;
    let clock = jiff::civil::Time::new(part(4)?, part(6)?, part(8)?, 0).ok()?;
    // `99991231235959Z` says that there is no end, and is a day past that of our time.
    let at = TimeZone::UTC.to_timestamp(day.to_datetime(clock));
    at.ok().or_else(|| (day >= date(9999, 12, 30)).then_some(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element with that content.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
        [head, content.to_vec()].concat()
    }

    fn certificate(version: bool, since: (u8, &str), until: (u8, &str)) -> Vec<u8> {
        let times = [der(since.0, since.1.as_bytes()), der(until.0, until.1.as_bytes())].concat();
        let mut body = if version { der(VERSION, &der(2, &[2])) } else { Vec::new() };
        body.extend(
            [der(2, &[7]), der(SEQUENCE, &[0; 90]), der(SEQUENCE, &[]), der(SEQUENCE, &times)].concat(),
        );
        der(SEQUENCE, &[der(SEQUENCE, &body), der(SEQUENCE, &[])].concat())
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (version, since, until, expected) in [
            (
                true,
                (UTC_TIME, "250101120000Z"),
                (UTC_TIME, "491231235959Z"),
                ("2025-01-01T12:00:00Z", "2049-12-31T23:59:59Z"),
            ),
            (
                false,
                (UTC_TIME, "500101000000Z"),
                (GENERALIZED_TIME, "20500101000000Z"),
                ("1950-01-01T00:00:00Z", "2050-01-01T00:00:00Z"),
            ),
        ] {
            let read = validity(&certificate(version, since, until)).unwrap();
            assert_eq!(read, (at(expected.0), at(expected.1)));
        }
        let endless = certificate(true, (UTC_TIME, "250101120000Z"), (GENERALIZED_TIME, "99991231235959Z"));
        assert_eq!(validity(&endless).unwrap().1, Timestamp::MAX, "no end");
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_refused() {
        let whole = certificate(true, (UTC_TIME, "250101120000Z"), (UTC_TIME, "260101120000Z"));
        // What comes after the times is not looked at, but must be as long as it says.
        for end in 0..whole.len() {
            assert!(validity(&whole[..end]).is_err(), "{end} bytes");
        }
        for wrong in [
            (UTC_TIME, "250132120000Z"),
            (UTC_TIME, "2501011200Z"),
            (UTC_TIME, "25010112000 Z"),
            (4, "250101120000Z"),
        ] {
            assert!(validity(&certificate(true, wrong, (UTC_TIME, "260101120000Z"))).is_err(), "{wrong:?}");
        }
        assert!(validity(b"-----BEGIN CERTIFICATE-----").is_err());
    }
}
