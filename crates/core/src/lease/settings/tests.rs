use super::*;

fn lock() -> Lock {
    Lock { lease: Key::new("kube-system", "loadline"), identity: "host_1".into() }
}

fn settings(lease: f64, renew: f64, retry: f64) -> Settings {
    let span = Duration::from_secs_f64;
    Settings { lease_duration: span(lease), renew_deadline: span(renew), retry_period: span(retry) }
}

#[test]
fn the_defaults_are_those_of_client_go_and_pass() {
    assert_eq!(Settings::default(), settings(15.0, 10.0, 2.0));
    assert_eq!(check(&Settings::default(), &lock()), []);
}

#[test]
fn each_span_is_checked_against_the_next() {
    let (lease, renew, retry) = (flag::LEASE_DURATION, flag::RENEW_DEADLINE, flag::RETRY_PERIOD);
    for (given, flags, why) in [
        (settings(60.0, 40.0, 5.0), &[][..], "what scheduler and controller manager of big clusters have"),
        (settings(15.0, 15.0, 2.0), &[renew], "not less than the lease duration"),
        (settings(15.0, 14.9, 2.0), &[], "less"),
        (settings(15.0, 2.4, 2.0), &[retry], "2 s × 1.2 = 2.4 s is not less"),
        (settings(15.0, 2.5, 2.0), &[], "2.4 s < 2.5 s"),
        (settings(15.5, 10.0, 2.0), &[lease], "others would wait for 15 s"),
        (settings(0.0, 10.0, 2.0), &[lease, renew], "nothing is shorter than nothing"),
        (settings(15.0, 0.0, 0.0), &[renew, retry], "a leader that may never write"),
        (settings(15.0, 10.0, 0.09), &[retry], "too often"),
        (settings(3e9, 10.0, 2.0), &[lease], "more seconds than the record can hold"),
    ] {
        let found: Vec<_> = check(&given, &lock()).iter().map(|problem| problem.flag).collect();
        assert_eq!(found, flags, "{given:?}: {why}");
    }
}

#[test]
fn everything_wrong_is_told_at_once_with_the_flag_and_what_was_expected() {
    let lock = Lock { lease: Key::new("Kube.System", "-x"), identity: String::new() };
    let told: Vec<_> = check(&settings(15.0, 20.0, 30.0), &lock).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "--leader-elect-renew-deadline: 20s given, expected more than 0s and less than \
             --leader-elect-lease-duration (15s)",
            "--leader-elect-retry-period: 30s given, expected at least 100ms, and 1.2 times as much to be less than \
             --leader-elect-renew-deadline (20s)",
            "--leader-elect-resource-name: \"-x\" given, expected a DNS subdomain: lower-case letters, digits, '-' and \
             '.', at most 253 characters",
            "--leader-elect-resource-namespace: \"Kube.System\" given, expected a DNS label: lower-case letters, digits \
             and '-', at most 63 characters",
            "identity: \"\" given, expected a name that no other candidate has",
        ]
    );
}

#[test]
fn names_are_checked_as_the_api_server_checks_them() {
    let long = |count| "a".repeat(count);
    for (name, namespace, fine) in [
        ("a", "a", (true, true)),
        ("a.b-c.1", "a.b", (true, false)),
        ("A", "A", (false, false)),
        ("", "", (false, false)),
        ("a-", "-a", (false, false)),
        ("a..b", "a_b", (false, false)),
        (&long(253), &long(63), (true, true)),
        (&long(254), &long(64), (false, false)),
    ] {
        let lock = Lock { lease: Key::new(namespace, name), ..lock() };
        let wrong: Vec<_> = check(&Settings::default(), &lock).iter().map(|problem| problem.flag).collect();
        let found = (!wrong.contains(&flag::RESOURCE_NAME), !wrong.contains(&flag::RESOURCE_NAMESPACE));
        assert_eq!(found, fine, "{name:?} {namespace:?}");
    }
}
