use super::*;
use jiff::Timestamp;

const ME: &str = "me_1";

/// Both clocks so many seconds after a start.
fn at(seconds: f64) -> Reading {
    let passed = Duration::from_secs_f64(seconds);
    Reading { monotonic: passed, wall: wall(0) + SignedDuration::try_from(passed).unwrap() }
}

fn wall(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn revision(text: &str) -> Revision {
    Revision(text.to_owned())
}

fn elector() -> Elector {
    Elector::new(Settings::default(), ME, 7)
}

/// What another candidate wrote at some time of its clock.
fn theirs(renewed: i64) -> Record {
    Record {
        holder_identity: Some("other".into()),
        lease_duration_seconds: Some(15),
        acquire_time: Some(wall(-100)),
        renew_time: Some(wall(renewed)),
        lease_transitions: Some(4),
        ..Record::default()
    }
}

#[track_caller]
fn sends(elector: &mut Elector, now: f64) -> (Request, Duration) {
    match elector.step(at(now)) {
        Step::Send(request, by) => (request, by),
        step => panic!("at {now}: {step:?}"),
    }
}

#[track_caller]
fn reads(elector: &mut Elector, now: f64) {
    assert_eq!(sends(elector, now).0, Request::Read, "at {now}");
}

/// A write of any kind, and the revision it replaces.
#[track_caller]
fn writes(elector: &mut Elector, now: f64) -> (Record, Option<Revision>) {
    match sends(elector, now).0 {
        Request::Create(record) => (record, None),
        Request::Update(record, revision) | Request::Release(record, revision) => (record, Some(revision)),
        Request::Read => panic!("at {now}: a read"),
    }
}

#[track_caller]
fn waits(elector: &mut Elector, now: f64) -> f64 {
    match elector.step(at(now)) {
        Step::Wait(until) => until.as_secs_f64(),
        step => panic!("at {now}: {step:?}"),
    }
}

/// One that made the Lease with a request sent at 0 and answered at 1; its record has revision `1`.
fn leader() -> (Elector, Record) {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(None, at(0.0));
    let (record, _) = writes(&mut elector, 0.0);
    elector.confirm(revision("1"), at(1.0));
    (elector, record)
}

#[test]
fn the_first_makes_the_lease_and_may_write_from_when_it_asked() {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(None, at(0.5));
    let (request, by) = sends(&mut elector, 0.5);
    let record = Record {
        holder_identity: Some(ME.into()),
        lease_duration_seconds: Some(15),
        acquire_time: Some(at(0.5).wall),
        renew_time: Some(at(0.5).wall),
        lease_transitions: Some(0),
        preferred_holder: None,
        strategy: None,
    };
    assert_eq!(request, Request::Create(record.clone()));
    assert_eq!(by, seconds(5.5), "half of the renew deadline for an answer");
    assert!(!elector.may_write(at(3.0)), "not before it is answered");
    elector.confirm(revision("1"), at(3.0));
    assert_eq!(
        elector.right().unwrap().until(),
        seconds(10.5),
        "10 s from 0.5, when it was sent, not from 3.0"
    );
    assert!(elector.may_write(at(10.4)));
    assert_eq!(elector.record(), Some(&record));
}

#[test]
fn an_answer_after_the_deadline_gives_no_right() {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(None, at(0.0));
    writes(&mut elector, 0.0);
    elector.confirm(revision("1"), at(10.0));
    assert!(!elector.may_write(at(10.0)));
    // The record is ours all the same: nobody has to wait for it to expire.
    let (record, replaces) = writes(&mut elector, 10.0);
    elector.confirm(revision("2"), at(10.1));
    assert_eq!((replaces, record.lease_transitions), (Some(revision("1")), Some(0)));
    assert!(elector.may_write(at(19.9)));
}

#[test]
fn a_leader_renews_every_retry_period_and_changes_nothing_but_the_time() {
    let (mut elector, first) = leader();
    assert_eq!(waits(&mut elector, 1.0).to_bits(), 2.0_f64.to_bits());
    let (request, by) = sends(&mut elector, 2.0);
    let renewed = Record { renew_time: Some(at(2.0).wall), ..first };
    assert_eq!(request, Request::Update(renewed, revision("1")), "without reading first");
    assert_eq!(by, seconds(7.0));
    elector.confirm(revision("2"), at(2.1));
    assert_eq!(elector.right().unwrap().until(), seconds(12.0));
    assert_eq!(waits(&mut elector, 2.1).to_bits(), 4.0_f64.to_bits());
}

#[test]
fn no_request_outlives_the_right() {
    let (mut elector, _) = leader();
    writes(&mut elector, 8.0);
    assert_eq!(elector.step(at(8.0)), Step::Wait(seconds(10.0)), "not 13");
    elector.fail(at(10.0));
    assert_eq!(elector.step(at(10.0)), Step::Lost(Loss::Deadline));
    reads(&mut elector, 10.0);
}

#[test]
fn a_renewal_without_an_answer_counts_when_it_is_read_back_and_from_its_sending() {
    let (mut elector, _) = leader();
    let (renewed, _) = writes(&mut elector, 2.0);
    elector.fail(at(7.0));
    assert_eq!(elector.right().unwrap().until(), seconds(10.0), "it may not have arrived");
    reads(&mut elector, 7.0);
    assert_eq!(elector.right().unwrap().until(), seconds(10.0));
    elector.observe(Some((renewed, revision("2"))), at(8.0));
    assert_eq!(elector.right().unwrap().until(), seconds(12.0), "sent at 2");
    let (_, replaces) = writes(&mut elector, 8.0);
    assert_eq!(replaces, Some(revision("2")));
}

#[test]
fn a_renewal_that_did_not_arrive_is_sent_again_and_may_be_overtaken_by_the_first() {
    let (mut elector, first) = leader();
    let (slow, _) = writes(&mut elector, 2.0);
    elector.fail(at(3.0));
    reads(&mut elector, 3.0);
    elector.observe(Some((first, revision("1"))), at(3.1));
    assert_eq!(elector.right().unwrap().until(), seconds(10.0));
    let (second, replaces) = writes(&mut elector, 3.1);
    assert_eq!(replaces, Some(revision("1")));
    assert_ne!(slow, second);
    // The first was only slow; the second is refused, and the record is that of the first.
    elector.fail(at(3.2));
    assert_eq!(waits(&mut elector, 3.2).to_bits(), 5.2_f64.to_bits(), "no third write without a pause");
    reads(&mut elector, 5.2);
    elector.observe(Some((slow, revision("2"))), at(5.2));
    assert_eq!(elector.right().unwrap().until(), seconds(12.0), "sent at 2, not at 3.1");
}

#[test]
fn another_holder_ends_the_right_at_once() {
    let (mut elector, _) = leader();
    writes(&mut elector, 2.0);
    elector.fail(at(2.1));
    reads(&mut elector, 2.1);
    elector.observe(Some((theirs(2), revision("2"))), at(2.2));
    assert_eq!(elector.right(), None);
    assert_eq!(elector.step(at(2.2)), Step::Lost(Loss::Holder("other".into())));
    assert!(matches!(elector.step(at(2.2)), Step::Wait(_)), "said once");
}

#[test]
fn a_record_with_our_name_that_we_did_not_write_is_somebody_elses() {
    let (mut elector, first) = leader();
    writes(&mut elector, 2.0);
    elector.fail(at(2.1));
    reads(&mut elector, 2.1);
    let twin = Record { renew_time: Some(wall(1)), ..first };
    elector.observe(Some((twin, revision("2"))), at(2.2));
    assert_eq!(elector.step(at(2.2)), Step::Lost(Loss::Holder(ME.into())));
}

#[test]
fn a_lease_that_is_only_labelled_stays_ours() {
    let (mut elector, first) = leader();
    writes(&mut elector, 2.0);
    elector.fail(at(2.1));
    reads(&mut elector, 2.1);
    let coordinated = Record { strategy: Some("OldestEmulationVersion".into()), ..first };
    elector.observe(Some((coordinated, revision("77"))), at(2.2));
    assert!(elector.may_write(at(2.2)));
    let (record, replaces) = writes(&mut elector, 2.2);
    assert_eq!(replaces, Some(revision("77")));
    assert_eq!(record.strategy.as_deref(), Some("OldestEmulationVersion"));
}

#[test]
fn expiry_is_judged_by_our_own_clock_and_the_records_duration() {
    // The writer's clock is an hour behind, right, or an hour ahead: no difference.
    for skew in [-3600, 0, 3600] {
        let mut elector = elector();
        let (mut now, mut changed, mut last) = (0.0, 0.0, -1);
        let (record, replaces) = loop {
            match elector.step(at(now)) {
                Step::Wait(until) => now = until.as_secs_f64(),
                Step::Send(Request::Read, _) => {
                    // Renewed every second until 10, and then never again.
                    let renewed = (0..=10).rev().find(|second| f64::from(*second) <= now).unwrap();
                    (changed, last) = if renewed == last { (changed, last) } else { (now, renewed) };
                    let record = theirs(skew + i64::from(renewed));
                    let record = Record { lease_duration_seconds: Some(6), ..record };
                    elector.observe(Some((record, revision(&renewed.to_string()))), at(now));
                }
                Step::Send(Request::Update(record, replaces), _) => break (record, replaces),
                step => panic!("{step:?}"),
            }
        };
        assert!((now - changed - 6.0).abs() < 1e-6, "{skew}: {now} is 6 s after {changed}");
        assert!(changed >= 10.0, "{skew}: as long as it is renewed it is not taken");
        assert_eq!(replaces, revision("10"));
        assert_eq!(record.lease_transitions, Some(5), "one more than before");
        assert_eq!(record.acquire_time, Some(to_micros(at(now).wall)));
    }
}

#[test]
fn a_record_is_taken_the_moment_it_expires() {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(Some((theirs(0), revision("9"))), at(1.0));
    let mut pauses = Vec::new();
    let mut now = 1.0;
    loop {
        let until = waits(&mut elector, now);
        pauses.push(until - now);
        now = until;
        reads(&mut elector, now);
        elector.observe(Some((theirs(0), revision("9"))), at(now));
        if now >= 16.0 {
            break;
        }
    }
    assert_eq!(now.to_bits(), 16.0_f64.to_bits(), "15 s after it was seen, at 1");
    let last = pauses.pop().unwrap();
    assert!(pauses.iter().all(|pause| (2.0..4.4).contains(pause)), "1 to 2.2 retry periods: {pauses:?}");
    assert!(last <= 4.4);
    assert!(pauses.windows(2).any(|two| (two[0] - two[1]).abs() > 1e-3), "not all alike: {pauses:?}");
    assert_eq!(writes(&mut elector, now).1, Some(revision("9")));
}

#[test]
fn a_record_that_does_not_say_how_long_lasts_as_long_as_ours() {
    let mut elector = elector();
    let unknown = Record { lease_duration_seconds: None, ..theirs(0) };
    reads(&mut elector, 0.0);
    elector.observe(Some((unknown.clone(), revision("1"))), at(0.0));
    waits(&mut elector, 0.0);
    reads(&mut elector, 14.9);
    elector.observe(Some((unknown.clone(), revision("1"))), at(14.9));
    waits(&mut elector, 14.9);
    reads(&mut elector, 15.0);
    elector.observe(Some((unknown, revision("1"))), at(15.0));
    writes(&mut elector, 15.0);
}

#[test]
fn a_released_lease_is_taken_at_once_with_what_coordination_added() {
    for nobody in [None, Some(String::new())] {
        let mut elector = elector();
        let released = Record {
            holder_identity: nobody,
            lease_duration_seconds: Some(1),
            preferred_holder: Some("third".into()),
            strategy: Some("OldestEmulationVersion".into()),
            ..theirs(0)
        };
        reads(&mut elector, 0.0);
        elector.observe(Some((released.clone(), revision("3"))), at(0.2));
        let (record, replaces) = writes(&mut elector, 0.2);
        let time = Some(at(0.2).wall);
        let expected = Record {
            holder_identity: Some(ME.into()),
            lease_duration_seconds: Some(15),
            acquire_time: time,
            renew_time: time,
            lease_transitions: Some(5),
            ..released
        };
        assert_eq!((record, replaces), (expected, Some(revision("3"))));
    }
}

#[test]
fn releasing_ends_the_right_first_and_writes_what_client_go_writes() {
    let (mut elector, first) = leader();
    elector.release(at(3.0));
    assert!(!elector.may_write(at(3.0)), "before anything is sent");
    let (request, by) = sends(&mut elector, 3.0);
    let time = Some(at(3.0).wall);
    let empty = Record {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: time,
        renew_time: time,
        ..first
    };
    assert_eq!(request, Request::Release(empty, revision("1")));
    assert_eq!(by, seconds(8.0));
    elector.confirm(revision("2"), at(3.1));
    assert_eq!(elector.step(at(3.1)), Step::Done);
    assert!(!elector.may_write(at(3.1)));
}

#[test]
fn releasing_finds_out_what_became_of_a_renewal_on_its_way() {
    let (mut elector, _) = leader();
    let (renewed, _) = writes(&mut elector, 2.0);
    elector.release(at(2.1));
    reads(&mut elector, 2.1);
    elector.observe(Some((renewed, revision("2"))), at(2.2));
    assert!(!elector.may_write(at(2.2)));
    assert_eq!(writes(&mut elector, 2.2).1, Some(revision("2")));
    // Refused or lost: one look, then the next try.
    elector.fail(at(2.3));
    let next = waits(&mut elector, 2.3);
    reads(&mut elector, next);
    elector.observe(Some((theirs(9), revision("3"))), at(next));
    assert_eq!(elector.step(at(next)), Step::Done, "somebody else has it");
}

#[test]
fn releasing_has_an_end() {
    let (mut elector, _) = leader();
    elector.release(at(3.0));
    let mut now = 3.0;
    let mut requests = 0;
    loop {
        match elector.step(at(now)) {
            Step::Wait(until) => now = until.as_secs_f64(),
            Step::Send(_, by) => {
                requests += 1;
                now = by.as_secs_f64();
                elector.fail(at(now));
            }
            Step::Done => break,
            step @ Step::Lost(_) => panic!("{step:?}"),
        }
    }
    assert_eq!(now.to_bits(), 13.0_f64.to_bits(), "a renew deadline later");
    assert!((2..=4).contains(&requests), "{requests}");
}

#[test]
fn who_never_led_has_nothing_to_release() {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(Some((theirs(0), revision("1"))), at(0.1));
    elector.release(at(0.2));
    assert_eq!(elector.step(at(0.2)), Step::Done);
}

#[test]
fn who_tried_in_vain_has_nothing_to_release() {
    let mut elector = elector();
    let free = Record { holder_identity: None, ..theirs(0) };
    reads(&mut elector, 0.0);
    elector.observe(Some((free, revision("1"))), at(0.0));
    writes(&mut elector, 0.0);
    elector.fail(at(0.1));
    let next = waits(&mut elector, 0.1);
    reads(&mut elector, next);
    elector.observe(Some((theirs(0), revision("2"))), at(next));
    waits(&mut elector, next);
    elector.release(at(next));
    assert_eq!(elector.step(at(next)), Step::Done, "what replaces revision 1 will never come");
}

#[test]
fn a_stopped_or_suspended_leader_finds_its_right_gone() {
    let on = |monotonic: f64, seconds: i64| Reading { wall: wall(seconds), ..at(monotonic) };
    for (monotonic, day, loss, why) in [
        (60.0, 60, Some(Loss::Deadline), "stopped: both clocks went on"),
        (2.0, 60, Some(Loss::Clock), "suspended: the monotonic clock stood still"),
        (60.0, 2, Some(Loss::Deadline), "the wall clock was set back meanwhile"),
        (2.0, -1, Some(Loss::Clock), "set back further than since the renewal: nobody knows how long"),
        (9.9, 9, None, "nothing happened"),
    ] {
        let (mut elector, _) = leader();
        let step = elector.step(on(monotonic, day));
        match loss {
            Some(loss) => {
                assert_eq!(step, Step::Lost(loss), "{why}");
                assert!(!elector.may_write(on(5.0, 5)), "{why}: it does not come back by itself");
            }
            None => assert!(matches!(step, Step::Send(Request::Update(..), _)), "{why}"),
        }
    }
}

#[test]
fn a_right_found_ended_does_not_come_back_with_the_clock() {
    let (mut elector, _) = leader();
    assert!(!elector.may_write(Reading { wall: wall(3600), ..at(1.5) }));
    assert!(!elector.may_write(at(1.6)));
    assert_eq!(elector.step(at(1.6)), Step::Lost(Loss::Clock));
    writes(&mut elector, 1.6);
    elector.confirm(revision("2"), at(1.7));
    assert!(elector.may_write(at(1.7)), "with a renewal it does, and that is sent at once");
}

#[test]
fn what_ended_once_is_not_given_again_by_the_same_renewal() {
    let (mut elector, first) = leader();
    writes(&mut elector, 2.0);
    assert!(!elector.may_write(Reading { wall: wall(3600), ..at(2.1) }));
    elector.fail(at(2.2));
    assert_eq!(elector.step(at(2.2)), Step::Lost(Loss::Clock));
    reads(&mut elector, 2.2);
    elector.observe(Some((first, revision("1"))), at(2.3));
    assert!(!elector.may_write(at(2.3)), "it is ours, and was long enough");
    writes(&mut elector, 2.3);
    elector.confirm(revision("2"), at(2.4));
    assert!(elector.may_write(at(2.4)));
}

#[test]
fn the_end_of_the_right_is_told_in_the_middle_of_a_pause() {
    let (mut elector, first) = leader();
    writes(&mut elector, 8.9);
    elector.fail(at(9.0));
    reads(&mut elector, 9.0);
    elector.observe(Some((first, revision("1"))), at(9.1));
    writes(&mut elector, 9.1);
    elector.fail(at(9.2));
    assert_eq!(elector.step(at(9.2)), Step::Wait(seconds(10.0)), "not 11.2, when the next try is due");
    assert_eq!(elector.step(at(10.0)), Step::Lost(Loss::Deadline));
}

#[test]
fn so_many_writes_without_an_end_are_not_remembered_for_ever() {
    let (mut elector, first) = leader();
    let mut sent = Vec::new();
    let mut now = 2.0;
    while sent.len() <= MOST_OPEN {
        match elector.step(at(now)) {
            Step::Wait(until) => now = until.as_secs_f64(),
            Step::Send(Request::Read, _) => elector.observe(Some((first.clone(), revision("1"))), at(now)),
            Step::Send(Request::Update(record, _), _) => {
                sent.push(record);
                elector.fail(at(now));
            }
            Step::Lost(_) => {}
            step => panic!("{step:?}"),
        }
    }
    for (found, ours) in [(&sent[0], false), (&sent[1], true)] {
        let mut elector = elector.clone();
        now += 10.0;
        reads(&mut elector, now);
        elector.observe(Some((found.clone(), revision("2"))), at(now));
        assert_eq!(matches!(elector.step(at(now)), Step::Send(Request::Update(..), _)), ours, "{found:?}");
    }
}

#[test]
fn renewals_differ_even_if_the_wall_clock_stands_still() {
    let (mut elector, first) = leader();
    let frozen = |monotonic: f64| Reading { wall: at(0.0).wall, ..at(monotonic) };
    let Step::Send(Request::Update(second, _), _) = elector.step(frozen(2.0)) else { panic!("no renewal") };
    assert_ne!(second, first);
    elector.fail(frozen(2.1));
    assert!(matches!(elector.step(frozen(2.1)), Step::Send(Request::Read, _)));
    elector.observe(Some((first.clone(), revision("1"))), frozen(2.2));
    let Step::Send(Request::Update(third, _), _) = elector.step(frozen(2.2)) else { panic!("no renewal") };
    assert!(third != second && third != first);
}

#[test]
fn a_deleted_lease_is_not_taken_while_its_holder_may_write() {
    let mut elector = elector();
    reads(&mut elector, 0.0);
    elector.observe(Some((theirs(0), revision("1"))), at(0.0));
    let next = waits(&mut elector, 0.0);
    reads(&mut elector, next);
    elector.observe(None, at(next));
    waits(&mut elector, next);
    assert_eq!(elector.record(), None);
    reads(&mut elector, 15.0);
    elector.observe(None, at(15.0));
    let (record, replaces) = writes(&mut elector, 15.0);
    assert_eq!((record.lease_transitions, replaces), (Some(0), None), "a new Lease begins anew");
}

#[test]
fn a_leader_whose_lease_was_deleted_stops_until_it_has_made_another() {
    let (mut elector, _) = leader();
    writes(&mut elector, 2.0);
    elector.fail(at(2.1));
    reads(&mut elector, 2.1);
    elector.observe(None, at(2.2));
    assert!(!elector.may_write(at(2.2)));
    assert_eq!(elector.step(at(2.2)), Step::Lost(Loss::Deleted));
    assert_eq!(writes(&mut elector, 2.2).1, None, "at once: nobody else led");
    elector.confirm(revision("5"), at(2.3));
    assert!(elector.may_write(at(2.3)));
}

#[test]
fn what_is_read_back_equals_what_was_written_to_the_microsecond() {
    let mut elector = elector();
    let fine = Reading { wall: wall(0) + SignedDuration::from_nanos(123_456_789), ..at(0.0) };
    elector.step(fine);
    elector.observe(None, fine);
    let Step::Send(Request::Create(record), _) = elector.step(fine) else { panic!("no create") };
    assert_eq!(record.renew_time, Some(wall(0) + SignedDuration::from_micros(123_456)));
}
