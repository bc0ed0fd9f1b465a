use super::*;
use crate::cluster::connection::{Call, Verb};
use crate::cluster::resource::MANAGED_CLUSTERS;
use crate::cluster::{Cause, Failure};
use jiff::SignedDuration;
use loadline_core::member::Taken;

const EVERY: Duration = Duration::from_secs(30);

fn books(members: &[&str]) -> Books {
    Books::new(members.iter().copied(), Rules::default(), EVERY)
}

fn report(cluster: &str, now: Now, used: i64) -> Report {
    let taken = Taken { allocatable: 8000, requested: 1000, measured: Some(used) };
    let summary =
        Summary { at: now.clock, nodes: 1, measured_nodes: 1, resources: [("cpu".to_owned(), taken)].into() };
    Report { cluster: cluster.to_owned(), summary: Ok(summary), problem: None, read: String::new() }
}

fn later(now: Now, seconds: u64) -> Now {
    let clock = now.clock + SignedDuration::from_secs(i64::try_from(seconds).unwrap());
    Now { clock, at: now.at + Duration::from_secs(seconds) }
}

fn failure(cause: Cause) -> Problem {
    let call = Call { verb: Verb::Patch, resource: MANAGED_CLUSTERS, subresource: "" };
    Problem::Failed(Failure { call, path: "/x".into(), cause, message: "no".into() })
}

/// Everything that is to be written now, by cluster and object.
fn jobs(books: &mut Books, now: Now) -> Vec<Job> {
    std::iter::from_fn(|| books.next(now)).collect()
}

fn named(jobs: &[Job]) -> Vec<(&str, &'static str)> {
    jobs.iter().map(|job| (&*job.cluster, job.object.name())).collect()
}

fn done(books: &mut Books, jobs: Vec<Job>, now: Now) {
    for job in jobs {
        let uid = (job.object == Object::Scores).then(|| "u1".into());
        books.done(Written { job, outcome: Ok(uid) }, now);
    }
}

#[test]
fn members_take_turns_and_nothing_is_written_twice() {
    let (mut books, now) = (books(&["m1", "m2"]), Now::read());
    assert_eq!(books.take(report("m2", now, 100), true, now), Worth::Write);
    assert_eq!(books.take(report("m1", now, 100), true, now), Worth::Write);
    assert_eq!(books.take(report("m1", now, 100), true, now), Worth::Nothing, "it is queued already");
    let first = jobs(&mut books, now);
    let want = [("m2", "annotation"), ("m2", "scores"), ("m1", "annotation"), ("m1", "scores")];
    assert_eq!(named(&first), want, "in the order they were heard of");
    assert_eq!(books.take(report("m1", now, 4000), true, now), Worth::Nothing, "it is under way");
    done(&mut books, first, now);
    let more = jobs(&mut books, now);
    assert_eq!(named(&more), [("m1", "annotation"), ("m1", "scores")], "what came meanwhile is not lost");
    assert_eq!(more[1].uid.as_deref(), Some("u1"), "by its identity");
    done(&mut books, more, now);
    assert_eq!(books.take(report("m1", later(now, 30), 4000), true, later(now, 30)), Worth::Nothing);
    assert_eq!(books.take(report("nobody", now, 1), true, now), Worth::Unknown);
}

#[test]
fn pauses_double_up_to_a_minute_and_what_is_known_by_then_is_written() {
    let (mut books, mut now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    let mut pauses = Vec::new();
    for used in 1..=8 {
        for job in jobs(&mut books, now) {
            let outcome = match job.object {
                Object::Annotation => Err(failure(Cause::Unreachable)),
                Object::Scores => Ok(Some("u1".into())),
            };
            books.done(Written { job, outcome }, now);
        }
        let retry = books.next_retry().unwrap();
        pauses.push((retry - now.at).as_secs());
        // Reports keep coming; they do not shorten a pause.
        now = later(now, (retry - now.at).as_secs() - 1);
        books.take(report("m1", now, used * 1000), true, now);
        let early = jobs(&mut books, now);
        assert!(early.iter().all(|job| job.object == Object::Scores), "{:?}", named(&early));
        done(&mut books, early, now);
        now = later(now, 1);
        books.look(true, now);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    let last = jobs(&mut books, now);
    let annotation = last.iter().find(|job| job.object == Object::Annotation).unwrap();
    assert_eq!(annotation.summary.resources["cpu"].measured, Some(8000), "the newest, not the first");
}

#[test]
fn a_hub_that_asks_for_time_gets_it() {
    let (mut books, now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    let retry_after = Some(Duration::from_secs(20));
    let job = books.next(now).unwrap();
    books.done(Written { job, outcome: Err(failure(Cause::TooManyRequests { retry_after })) }, now);
    assert_eq!(books.next_retry().unwrap() - now.at, Duration::from_secs(20));
}

#[test]
fn what_expired_while_the_hub_was_away_is_not_told() {
    let (mut books, now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    for job in jobs(&mut books, now) {
        books.done(Written { job, outcome: Err(failure(Cause::Unreachable)) }, now);
    }
    let now = later(now, 301);
    books.look(true, now);
    assert!(jobs(&mut books, now).is_empty(), "it held for 300 s");
}

#[test]
fn a_member_that_is_away_is_not_told_of() {
    let (mut books, now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    let first = jobs(&mut books, now);
    done(&mut books, first, now);
    let away = Report { summary: Err("watching nodes: gone".into()), ..report("m1", now, 1) };
    let now = later(now, 200);
    assert_eq!(books.take(away, true, now), Worth::Unknown);
    assert!(jobs(&mut books, now).is_empty(), "not even to renew it");
}

#[test]
fn scores_of_a_cluster_that_is_not_there_are_not_written() {
    let (mut books, now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    let annotation = books.next(now).unwrap();
    books.done(Written { job: annotation, outcome: Err(Problem::Missing("m1".into())) }, now);
    assert!(jobs(&mut books, now).is_empty(), "they were queued, and are passed over");
    let now = later(now, 1);
    books.look(true, now);
    let again = jobs(&mut books, now);
    assert_eq!(named(&again), [("m1", "annotation")]);
    done(&mut books, again, now);
    assert_eq!(named(&jobs(&mut books, now)), [("m1", "scores")], "at once when it is there");
}

#[test]
fn who_does_not_lead_writes_nothing_and_begins_anew_when_it_does() {
    let (mut books, now) = (books(&["m1"]), Now::read());
    books.take(report("m1", now, 100), true, now);
    let first = jobs(&mut books, now);
    done(&mut books, first, now);
    books.take(report("m1", now, 4000), true, now);
    books.forget();
    assert!(jobs(&mut books, now).is_empty());
    assert_eq!(books.take(report("m1", now, 4000), false, now), Worth::Unknown);
    assert_eq!(
        books.take(report("m1", now, 4000), true, now),
        Worth::Write,
        "nobody knows what the hub was told"
    );
    assert_eq!(jobs(&mut books, now)[0].why, Due::First);
}
