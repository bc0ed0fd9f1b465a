//! Which workload was a pod of, by its name alone? Those that are gone have no owner any more.

/// What generated names are made of: no vowels, nothing that looks like something else.
const SAFE: &str = "bcdfghjklmnpqrstvwxz2456789";
/// How many of them a pod gets.
const SUFFIX: usize = 5;

/// The name without what controllers add to it: `web-7d9c8b6f5-x2x4z` and `web-5f6d9-bcdfg` are of `web`, `db-0` of `db`,
/// `nightly-28391230-x2x4z` of `nightly`.
pub(super) fn of(pod: &str) -> &str {
    let Some(stem) = cut(pod, |end| end.len() == SUFFIX && is_safe(end)) else {
        return cut(pod, is_number).unwrap_or(pod);
    };
    cut(stem, |end| is_number(end) && end.len() >= 6)
        .or_else(|| cut(stem, |end| (4..=10).contains(&end.len()) && is_safe(end) && has_digit(end)))
        .unwrap_or(stem)
}

/// What is before the last dash, if what is behind it is that.
fn cut(name: &str, is: impl Fn(&str) -> bool) -> Option<&str> {
    name.rsplit_once('-').filter(|(stem, end)| !stem.is_empty() && is(end)).map(|(stem, _)| stem)
}

fn is_safe(text: &str) -> bool {
    text.chars().all(|c| SAFE.contains(c))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controllers_add_is_taken_off() {
        for (pod, workload, why) in [
            ("web-7d9c8b6f5-x2x4z", "web", "a deployment: the hash of the template, then five"),
            ("shop-api-6c54bd5869-5tq9v", "shop-api", "its name has dashes"),
            ("logs-x2x4z", "logs", "a daemon set or job: five"),
            ("db-0", "db", "a stateful set: its number"),
            ("nightly-28391230-x2x4z", "nightly", "a cron job: its minute, then five"),
            ("web-proxy-x2x4z", "web-proxy", "a word is no hash: it has vowels or no digit"),
            ("my-tls-x2x4z", "my-tls", "too short for a hash"),
            ("debug", "debug", "nothing was added"),
            ("-x2x4z", "-x2x4z", "nothing would be left"),
        ] {
            assert_eq!(of(pod), workload, "{why}");
        }
    }
}
