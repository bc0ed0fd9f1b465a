//! Do certificates end soon?

use super::facts::{Certificate, Facts};
use super::{Finding, span};
use jiff::SignedDuration;

const CHECK: &str = "certificates";

/// So long before its end a certificate should have been renewed.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    facts.certificates.iter().map(|one| judged(one, facts.now)).collect()
}

fn judged(one: &Certificate, now: jiff::Timestamp) -> Finding {
    let Certificate { from, good } = one;
    let is_file = from.contains('/') || !from.contains(':');
    let show = if is_file {
        format!("openssl x509 -noout -dates -in {from}")
    } else {
        format!("openssl s_client -connect {from} </dev/null | openssl x509 -noout -dates")
    };
    let why = "whoever asks the estimator refuses to talk to it: replicas are then divided without estimates";
    let renew = "renew it (the estimator reads its files again by itself), and look why nobody did";
    match good {
        Err(problem) => Finding::broken(CHECK, format!("no certificate from {from}: {problem}"))
            .why(why)
            .fix("look whether the estimator runs, listens there and has a certificate")
            .show(show),
        Ok((_, until)) if *until <= now => {
            let ago = span(now.duration_since(*until));
            Finding::broken(CHECK, format!("the certificate of {from} ended {ago} ago"))
                .why(why)
                .fix(renew)
                .show(show)
        }
        Ok((since, _)) if *since > now => {
            let left = span(since.duration_since(now));
            Finding::broken(CHECK, format!("the certificate of {from} is not good for another {left}"))
                .why(why)
                .fix("look whether the clock is right, here and where it was made")
                .show(show)
        }
        Ok((_, until)) => {
            let left = until.duration_since(now);
            if left < SOON {
                Finding::warning(CHECK, format!("the certificate of {from} ends in {}", span(left)))
                    .why(why)
                    .fix(renew)
                    .show(show)
            } else {
                Finding::ok(CHECK, format!("the certificate of {from} is good for {}", span(left)), show)
            }
        }
    }
}
