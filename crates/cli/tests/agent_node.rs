//! `loadline agent` on a real node: real processes in real cgroups are slowed down by a real container runtime, and get
//! everything back.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/account.rs"]
mod account;
#[path = "common/gate.rs"]
mod gate;
#[path = "common/protected.rs"]
mod protected;
#[path = "common/service.rs"]
mod service;

use gate::{Gate, Hold};
use loadline_testkit::{ControlPlane, Line, RealNode};
use protected::{Stage, UNLIMITED};
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pods of one test at a time: they need the machine for themselves.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_node_over_its_line_is_brought_below_it_and_everything_comes_back() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    // 200 + 2 × 600 + 100 = 1500 of 2000 millicores.
    stage.run("shop", "200", false);
    stage.run("batch-a", "600", true);
    stage.run_limited("batch-b", "600", "800m");
    stage.run("batch-small", "100", true);
    for name in ["shop", "batch-a", "batch-small"] {
        assert_eq!(stage.quota(name), UNLIMITED, "{name}");
    }
    assert_eq!(stage.quota("batch-b"), 80_000, "what the kubelet wrote: 800m of 100 000 µs");
    let agent = stage.agent(&["--act"]);
    agent.until("rules: there are none");
    // A line that is far away: it looks, and finds nothing to do.
    stage.throttle_above(1900, 60);
    let looks = |text: &str| figure(text, "loadline_agent_cycles_total");
    until("it looks", || (looks(&agent.get("/metrics")) >= 3.0).then_some(()));
    // A busy machine may be slow to give them what they want.
    until("all of them run", || (stage.used_milli() > 1400.0).then_some(()));
    assert!(agent.sum("loadline_agent_throttled_total") < 0.5);
    // 1.1 × (1500 − 1100) = 440. A step takes 60 %: the large ones go from 600 to 240, which is 720 less. The small one is not needed.
    stage.rule("busy", 1100, "slow-down");
    let crossed = looks(&agent.get("/metrics"));
    let mut idle = crossed;
    while {
        let text = agent.get("/metrics");
        let acts = figure(&text, "loadline_agent_throttled_total") > 0.5;
        idle = if acts { idle } else { looks(&text) };
        !acts
    } {
        // One that was under way when the line came may have missed it; the next must not.
        assert!(idle - crossed < 1.5, "{} looks without an act", idle - crossed);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    until("the node is below its line", || (stage.used_milli() < 1100.0).then_some(()));
    assert_eq!(stage.quota("shop"), UNLIMITED, "nobody allowed that");
    // On a machine that others use, too, a sample may be so high that the small one was needed; then the Event says so.
    for name in ["batch-a", "batch-b", "batch-small"] {
        // What the kubelet gave: nobody had to slow it down.
        if [UNLIMITED, 80_000].contains(&stage.quota(name)) {
            continue;
        }
        let gaps = until("it is told", || {
            let told = stage.events_by("loadline-agent", name).into_iter();
            let told: Vec<f64> = told.filter_map(|(_, words)| gap_before(&words)).collect();
            (!told.is_empty()).then_some(told)
        });
        assert!(gaps.iter().all(|gap| *gap > 0.0), "{name} was not needed: {gaps:?}");
    }
    assert!(stage.is_tainted());
    // One of them alone may have been enough, if the machine gave them less than they want.
    let is_slowed = |name: &&str| (1..60_000).contains(&stage.quota(name));
    let slowed: Vec<&str> = ["batch-a", "batch-b"].into_iter().filter(is_slowed).collect();
    assert!(!slowed.is_empty());
    stage.until_journal_equals_cgroups(&slowed);
    let document: Value = serde_json::from_str(&agent.explain(node.name(), "json")).unwrap();
    let acts = document["acts"].as_array().unwrap().iter().filter(|act| act["act"] == "throttled");
    let acts: Vec<&Value> = acts.collect();
    let cycles: BTreeSet<&str> = acts.iter().map(|act| act["time"].as_str().unwrap()).collect();
    assert!(cycles.len() <= 2, "below its line within two cycles: {document}");
    // The newest comes first: what was planned is what the kernel holds them to.
    for name in slowed {
        let act = acts.iter().find(|act| act["pod"] == format!("default/{name}")).unwrap();
        assert_eq!(act["quotaUs"], stage.quota(name), "{act}");
    }

    // With the others gone there is room for all that is left.
    stage.delete("shop");
    stage.delete("batch-a");
    until("what is left has what the kubelet gave it", || (stage.quota("batch-b") == 80_000).then_some(()));
    until("the node is open again", || (!stage.is_tainted()).then_some(()));
    until("nothing is written down any more", || {
        stage.journal()["state"]["throttled"].as_array()?.is_empty().then_some(())
    });
    let metrics = agent.get("/metrics");
    assert!(metrics.contains("loadline_agent_api_requests"), "{metrics}");
    assert!(!metrics.contains("outcome=\"forbidden\""), "the account may do all it needs: {metrics}");
}

/// How far it was to the line before somebody was slowed down, as an Event says.
fn gap_before(words: &str) -> Option<f64> {
    words.contains("lowered").then_some(())?;
    words.rsplit_once("gap ")?.1.split_once(" → ")?.0.parse().ok()
}

/// The sum of a metric in what `/metrics` said at one time.
fn figure(text: &str, metric: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(metric));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Where an agent is when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BeforeJournal,
    BeforeWrite,
    AfterWrite,
    AfterAll,
    /// As before, and then its journal is cut.
    WithoutJournal,
}

/// Does the process wait for somebody to open the other end of a pipe?
fn waits_at_pipe(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/wchan"))
        .is_ok_and(|place| place.contains("partner") || place.contains("fifo"))
}

#[test]
fn an_agent_killed_at_any_step_leaves_nothing_behind() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run("batch", "600", true);
    let gate = Gate::before(&node.socket());
    let socket = gate.socket();
    let args = ["--act", "--runtime-endpoint", socket.to_str().unwrap()];
    stage.throttle_above(400, 40);
    // It gives nothing back while the rule is there, so that what is done twice is seen.
    let rule = || stage.rule_restoring_after("busy", 400, "slow-down", 100);
    rule();
    let pipe = stage.state.path().join("journal.json.new");
    // 600 by 40 % less is 36 000 of 100 000 µs, of what was measured.
    let is_slowed = |us: i64| (1..45_000).contains(&us);
    let journal = stage.state.path().join("journal.json");
    for step in
        [Step::BeforeJournal, Step::BeforeWrite, Step::AfterWrite, Step::AfterAll, Step::WithoutJournal]
    {
        match step {
            Step::BeforeJournal => {
                let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
                assert!(made.success());
            }
            Step::BeforeWrite => gate.hold(Hold::Questions),
            Step::AfterWrite => gate.hold(Hold::Answers),
            Step::AfterAll | Step::WithoutJournal => {}
        }
        let agent = stage.agent(&args);
        until(&format!("{step:?}"), || {
            let is_there = match step {
                Step::BeforeJournal => waits_at_pipe(agent.pid()),
                Step::BeforeWrite => gate.is_holding() && stage.noted("batch").is_some(),
                Step::AfterWrite => is_slowed(stage.quota("batch")),
                Step::AfterAll | Step::WithoutJournal => {
                    stage.noted("batch").is_some_and(|(us, unsure)| is_slowed(us) && unsure.is_none())
                }
            };
            is_there.then_some(())
        });
        agent.signal("KILL");
        drop(agent);
        let (quota, noted) = (stage.quota("batch"), stage.noted("batch"));
        match step {
            Step::BeforeJournal => {
                assert_eq!((quota, noted), (UNLIMITED, None), "nothing is done that is not written down");
            }
            Step::BeforeWrite => {
                assert_eq!(quota, UNLIMITED, "{noted:?}");
                assert!(
                    noted.is_some_and(|(us, unsure)| us == UNLIMITED && unsure.is_some_and(is_slowed)),
                    "{noted:?}"
                );
            }
            Step::AfterWrite => {
                assert_eq!(
                    noted,
                    Some((UNLIMITED, Some(quota))),
                    "the outcome is not known, and found in the quota"
                );
            }
            Step::AfterAll => assert!(is_slowed(quota)),
            Step::WithoutJournal => {
                assert!(is_slowed(quota));
                let text = std::fs::read(&journal).unwrap();
                std::fs::write(&journal, &text[..text.len() / 2]).unwrap();
            }
        }
        let _ = std::fs::remove_file(&pipe);
        gate.hold(Hold::Nothing);
        let stays = matches!(step, Step::AfterWrite | Step::AfterAll);
        if !stays {
            // The rule is gone when the next agent comes: it gives back what it finds, and only that.
            stage.forget_rule("busy");
        }
        let next = stage.agent(&args);
        if stays {
            // The rule is still there, and what was done is enough: it is not done again.
            until("it has looked some times", || {
                assert_eq!(stage.quota("batch"), quota, "{step:?}: as it was, and not slowed down again");
                (next.sum("loadline_agent_cycles_total") >= 5.0).then_some(())
            });
            assert!(next.sum("loadline_agent_throttled_total") < 0.5, "{step:?}");
            stage.forget_rule("busy");
        }
        until("everything is given back", || {
            (stage.quota("batch") == UNLIMITED && stage.all_is_back()).then_some(())
        });
        next.until("throttled containers: 0");
        until("the node is open, and bears no mark", || {
            (stage.marks() == (false, false, false)).then_some(())
        });
        assert!(next.ends());
        assert_eq!(stage.quota("batch"), UNLIMITED, "{step:?}");
        // What may still arrive is looked out for; the next one is to know of nothing.
        let _ = std::fs::remove_file(&journal);
        rule();
    }
}

#[test]
fn an_agent_killed_while_it_gives_back_leaves_nothing_behind() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run_limited("batch", "600", "800m");
    let gate = Gate::before(&node.socket());
    let socket = gate.socket();
    let args = ["--act", "--runtime-endpoint", socket.to_str().unwrap()];
    stage.throttle_above(400, 40);
    for held in [Hold::Questions, Hold::Answers] {
        let agent = stage.agent(&args);
        until("it is slowed down", || {
            stage.noted("batch").filter(|(us, unsure)| *us < 80_000 && unsure.is_none()).map(|_| ())
        });
        let slowed = stage.quota("batch");
        // It is killed before the runtime hears of it, and after the runtime has done it.
        gate.hold(held);
        stage.forget_rule("busy");
        until("it gives back", || {
            let is_there = match held {
                Hold::Answers => stage.quota("batch") > slowed,
                _ => gate.is_holding(),
            };
            is_there.then_some(())
        });
        agent.signal("KILL");
        drop(agent);
        assert!(held == Hold::Answers || stage.quota("batch") == slowed, "nobody has heard of it");
        gate.hold(Hold::Nothing);
        let next = stage.agent(&args);
        until("it has what the kubelet gave it", || {
            (stage.quota("batch") == 80_000 && stage.all_is_back()).then_some(())
        });
        next.until("throttled containers: 0");
        until("the node is open, and bears no mark", || {
            (stage.marks() == (false, false, false)).then_some(())
        });
        assert!(next.ends());
        let _ = std::fs::remove_file(stage.state.path().join("journal.json"));
        stage.rule("busy", 400, "slow-down");
    }
}

#[test]
fn an_agent_killed_while_it_evicts_sends_nobody_away_twice_and_nobody_instead() {
    let _alone = alone();
    let Some(plane) = ControlPlane::setup().audited().start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.action("evict", &json!({"coolDownSeconds": 5, "eviction": {"terminationGracePeriodSeconds": 1}}));
    stage.scope(&["evict"]);
    for arrives in [false, true] {
        let names = [format!("large-{arrives}"), format!("small-{arrives}")];
        stage.run(&names[0], "650", true);
        stage.run(&names[1], "450", true);
        let line = Line::to(plane.port()).unwrap();
        let kubeconfig = stage.kubeconfig_through(&line);
        let agent = stage.agent(&["--act", "--kubeconfig", kubeconfig.path().to_str().unwrap()]);
        // Pods are read once there is a rule, also one that is far away.
        stage.rule("full", 1900, "evict");
        until("it looks", || (agent.sum("loadline_agent_cycles_total") >= 2.0).then_some(()));
        until("both of them run", || (stage.used_milli() > 1000.0).then_some(()));
        // It hears everything, and nobody hears it. 1.1 × (1100 − 800) = 330: the large one is enough.
        line.hold();
        stage.rule("full", 800, "evict");
        until("it is written down who is to go", || {
            let journal = stage.journal();
            journal["state"]["evictions"].as_array()?.first().map(|_| ())
        });
        agent.signal("KILL");
        drop(agent);
        if !arrives {
            line.cut();
        }
        line.let_go();
        // The rule is still there.
        let next = stage.agent(&["--act"]);
        until("one of them is gone", || stage.pod(&names[0]).is_null().then_some(()));
        let looks = next.sum("loadline_agent_cycles_total");
        until("it has looked some times", || {
            (next.sum("loadline_agent_cycles_total") >= looks + 5.0).then_some(())
        });
        let small = stage.pod(&names[1]);
        let stays = small["metadata"]["deletionTimestamp"].is_null() && small["status"]["phase"] == "Running";
        assert!(stays, "{small}");
        let log = plane.audit().unwrap();
        let granted = |name: &str| {
            let is_it = |entry: &&Value| {
                let object = &entry["objectRef"];
                object["subresource"] == "eviction"
                    && object["name"] == name
                    && entry["responseStatus"]["code"] == 201
            };
            log.iter().filter(is_it).count()
        };
        assert_eq!((granted(&names[0]), granted(&names[1])), (1, 0), "each is asked to go once");
        stage.forget_rule("full");
        until("the node is open, and bears no mark", || {
            (stage.marks() == (false, false, false)).then_some(())
        });
        assert!(next.ends());
        stage.delete(&names[1]);
        until("it is gone", || stage.pod(&names[1]).is_null().then_some(()));
        let _ = std::fs::remove_file(stage.state.path().join("journal.json"));
    }
}

#[test]
fn on_a_full_disk_or_with_a_strange_journal_nothing_is_done_that_is_not_written_down() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run("batch", "600", true);
    let disk = SmallDisk::new();
    // Full from the beginning, with a journal that another node's agent wrote.
    let strange = r#"{"version": 1, "node": "another", "state": {"throttled": "everybody"}}"#;
    std::fs::write(disk.path().join("journal.json"), strange).unwrap();
    disk.fill();
    let agent = stage.agent(&["--act", "--state-dir", disk.path().to_str().unwrap()]);
    stage.throttle_above(400, 40);
    until("it cannot write", || (agent.sum("loadline_agent_journal_broken") > 0.5).then_some(()));
    let looks = agent.sum("loadline_agent_cycles_total");
    until("it has looked some times", || {
        (agent.sum("loadline_agent_cycles_total") >= looks + 4.0).then_some(())
    });
    assert_eq!(stage.quota("batch"), UNLIMITED);
    assert!(agent.sum("loadline_agent_throttled_total") < 0.5, "nothing is done");
    disk.empty();
    until("it is slowed down", || (stage.quota("batch") != UNLIMITED).then_some(()));
    assert!(agent.sum("loadline_agent_journal_broken") < 0.5);
    stage.forget_rule("busy");
    until("everything is given back", || (stage.quota("batch") == UNLIMITED).then_some(()));
    assert!(agent.ends());
}

/// A file system of its own that a test can fill.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k", "loadline-test"]).arg(folder.path());
        assert!(mount.status().unwrap().success(), "a file system of 128 KiB");
        Self(folder)
    }

    fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    fn fill(&self) {
        let error = std::fs::write(self.path().join("ballast"), vec![0; 256 << 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }

    fn empty(&self) {
        std::fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

#[test]
fn where_throttling_is_not_enough_a_pod_is_evicted_and_the_next_where_its_budget_forbids_it() {
    let _alone = alone();
    let Some(plane) = ControlPlane::setup().audited().start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    // First and third together use 840 when nobody slows them: enough below the line of 1000 that a busy machine changes nothing.
    stage.run_requesting("first", "650", "600m");
    stage.run_patient("second", "550", "450m", 30);
    stage.run_requesting("third", "190", "180m");
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "first"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"keep": "yes"}}}});
    plane.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).unwrap();
    plane
        .patch("/api/v1/namespaces/default/pods/first", &json!({"metadata": {"labels": {"keep": "yes"}}}))
        .unwrap();
    let scheduler = Service::start(&["scheduler", "--kubeconfig", plane.kubeconfig().to_str().unwrap()]);
    scheduler.until("active");
    let agent = stage.agent(&["--act"]);
    agent.until("rules: there are none");
    until("all of them run", || (stage.used_milli() > 1300.0).then_some(()));
    stage.throttle_above(1000, 40);
    // Down to what they request: 600 + 450 + 180 = 1230 millicores, and no further.
    until("throttling is at its end", || {
        let quotas = ["first", "second", "third"].map(|name| stage.quota(name));
        (quotas == [60_000, 45_000, 18_000]).then_some(())
    });
    stage.action("evict", &json!({"coolDownSeconds": 600, "eviction": {"terminationGracePeriodSeconds": 5}}));
    // 1.1 × (1230 − 1000) = 253: one pod is enough, and the first is the one that uses most, but may not go.
    stage.rule("full", 1000, "evict");
    until("the second is gone", || stage.pod("second").is_null().then_some(()));
    let log = plane.audit().unwrap();
    let asked = log.iter().filter(|entry| entry["objectRef"]["subresource"] == "eviction");
    for entry in asked.clone() {
        let grace = &entry["requestObject"]["deleteOptions"]["gracePeriodSeconds"];
        assert_eq!(*grace, 5, "what the action says, not the 30 of the pod: {entry}");
    }
    let asked: Vec<(&str, u64)> = asked
        .filter_map(|entry| {
            Some((entry["objectRef"]["name"].as_str()?, entry["responseStatus"]["code"].as_u64()?))
        })
        .collect();
    assert_eq!(asked, [("first", 429), ("second", 201)], "blocked once, and the next goes");
    until("the node is below its line", || (stage.used_milli() < 1000.0).then_some(()));
    for name in ["first", "third"] {
        assert_eq!(stage.pod(name)["status"]["phase"], "Running", "{name}");
        assert!(stage.pod(name)["metadata"]["deletionTimestamp"].is_null(), "{name}");
    }
    until("it is told", || stage.events("first").contains(&"EvictionBlocked".to_owned()).then_some(()));
    until("it is told", || stage.events("second").contains(&"Evicted".to_owned()).then_some(()));
    assert!(stage.is_tainted(), "nobody is sent here while it cools");
    let node_object = plane.get(&format!("/api/v1/nodes/{}", node.name())).unwrap();
    assert!(
        node_object["metadata"]["annotations"]["loadline.dev/cooling-until"].is_string(),
        "{node_object}"
    );

    // Who comes in its place is not sent here.
    stage.ask_for("second-again");
    until("it waits", || {
        let told = stage.events_by("loadline-scheduler", "second-again").into_iter();
        let mut told = told.filter(|(reason, _)| reason == "FailedScheduling");
        told.any(|(_, words)| words.contains("1 node(s) were cooling down")).then_some(())
    });

    // What was done is explained, with what it released.
    let act = until("the eviction is measured", || {
        let document: Value = serde_json::from_str(&agent.explain(node.name(), "json")).unwrap();
        let acts = document["acts"].as_array()?.clone();
        acts.into_iter().find(|act| act["act"] == "evicted" && act["pending"] == false)
    });
    assert_eq!((&act["pod"], &act["rule"]), (&json!("default/second"), &json!("full/full")));
    assert!(agent.explain(node.name(), "table").contains("default/second"));
    let (predicted, measured) = (act["predicted"].as_f64().unwrap(), act["measured"].as_f64().unwrap());
    assert!((250.0..=750.0).contains(&predicted) && (predicted - measured).abs() < 1.0, "{act}");
    assert!((agent.sum("loadline_agent_evicted_total") - 1.0).abs() < 0.5);
    until("the others have everything back", || {
        ["first", "third"].iter().all(|name| stage.quota(name) == UNLIMITED).then_some(())
    });
    assert!(stage.pod("second-again")["spec"]["nodeName"].is_null(), "the node still cools");
}

#[test]
fn a_preview_says_everything_and_changes_nothing() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run("batch", "600", true);
    let told = |agent: &Service| {
        until("the plan is told", || {
            let text = agent.explain(node.name(), "table");
            (text.contains("quota") && text.contains("default/batch")).then_some(text)
        })
    };
    let untouched = || {
        assert_eq!(stage.quota("batch"), UNLIMITED);
        assert!(!stage.is_tainted());
        assert!(stage.noted("batch").is_none());
    };
    stage.throttle_above(400, 40);
    let agent = stage.agent(&[]);
    agent.until("preview: plans are told, and nothing is changed");
    told(&agent);
    untouched();
    assert!(agent.ends());
    // The same by an annotation of the node, which whoever may write nodes can set in a hurry.
    let path = format!("/api/v1/nodes/{}", node.name());
    plane.patch(&path, &json!({"metadata": {"annotations": {"loadline.dev/preview": "true"}}})).unwrap();
    let agent = stage.agent(&["--act"]);
    told(&agent);
    untouched();
    plane.patch(&path, &json!({"metadata": {"annotations": {"loadline.dev/preview": null}}})).unwrap();
    until("it acts", || (stage.quota("batch") != UNLIMITED).then_some(()));

    // Another one waits for its end, and goes on from there.
    let second = Service::start(&stage.args(&["--act", "--restore-on-exit"]));
    second.until("standby: another agent is at work on this node");
    // One that keeps its state elsewhere waits as well, and gives nothing back at its end that is not its own.
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = ["--act", "--restore-on-exit", "--state-dir", elsewhere.path().to_str().unwrap()];
    let third = stage.agent(&elsewhere);
    third.until("standby: another agent is at work on this node");
    assert!(third.ends());
    assert!(stage.quota("batch") != UNLIMITED && stage.is_tainted());
    assert!(agent.ends());
    assert_ne!(stage.quota("batch"), UNLIMITED, "left to the next");
    second.until("throttled containers: 1");
    assert!(second.ends());
    assert_eq!(stage.quota("batch"), UNLIMITED, "given back at the end");
    assert!(!stage.is_tainted());
    assert!(stage.noted("batch").is_none());
}

#[test]
fn without_the_api_server_throttling_goes_on_and_evictions_wait() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run("batch", "600", true);
    stage.run("other", "500", true);
    let line = Line::to(plane.port()).unwrap();
    let kubeconfig = stage.kubeconfig_through(&line);
    let gate = Gate::before(&node.socket());
    let socket = gate.socket();
    let agent = stage.agent(&[
        "--act",
        "--kubeconfig",
        kubeconfig.path().to_str().unwrap(),
        "--runtime-endpoint",
        socket.to_str().unwrap(),
    ]);
    stage.action("evict", &json!({"coolDownSeconds": 600, "eviction": {"terminationGracePeriodSeconds": 1}}));
    // Pods are read once there is a rule, also one that is far away.
    stage.throttle_above(1900, 10);
    until("it looks", || (agent.sum("loadline_agent_cycles_total") >= 2.0).then_some(()));
    until("both of them run", || (stage.used_milli() > 900.0).then_some(()));
    // From here on it hears of everything, and nobody hears it: who has to go is known, and cannot be told.
    line.hold();
    gate.hold(Hold::Questions);
    stage.rule("busy", 400, "slow-down");
    stage.rule("full", 300, "evict");
    until("it begins", || gate.is_holding().then_some(()));
    gate.hold(Hold::Nothing);
    until("it is slowed down all the same", || {
        ((1..45_000).contains(&stage.quota("batch")) && (1..40_000).contains(&stage.quota("other")))
            .then_some(())
    });
    until("the journal is kept", || stage.noted("batch"));
    let due = until("an eviction is due", || {
        let document: Value = serde_json::from_str(&agent.explain(node.name(), "json")).ok()?;
        document["victims"].as_array().filter(|victims| !victims.is_empty()).cloned()
    });
    for name in ["batch", "other"] {
        let pod = stage.pod(name);
        assert!(
            pod["metadata"]["deletionTimestamp"].is_null() && pod["metadata"]["name"] == name,
            "{pod} {due:?}"
        );
    }
    assert!(agent.sum("loadline_agent_evicted_total") < 0.5, "nothing is pretended");
    // What was on the way is lost; the line is mended, and what is due is done.
    line.cut();
    line.let_go();
    line.mend();
    until("one is evicted", || (stage.pod("batch").is_null() || stage.pod("other").is_null()).then_some(()));
    assert!(agent.sum("loadline_agent_journal_broken") < 0.5);
}

#[test]
fn a_runtime_that_hangs_is_not_taken_for_one_that_acted() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run("batch", "600", true);
    let gate = Gate::before(&node.socket());
    let socket = gate.socket();
    gate.hold(Hold::Questions);
    let agent = stage.agent(&["--act", "--runtime-endpoint", socket.to_str().unwrap()]);
    stage.throttle_above(400, 40);
    until("it fails", || (agent.sum("loadline_agent_failed_writes_total") >= 2.0).then_some(()));
    assert_eq!(stage.quota("batch"), UNLIMITED);
    assert!(agent.sum("loadline_agent_throttled_total") < 0.5, "nothing is pretended");
    assert!(stage.noted("batch").is_some_and(|(us, unsure)| us == UNLIMITED && unsure.is_some()));
    // It comes back, and what it was asked meanwhile is carried out, or not: both are found out.
    gate.hold(Hold::Nothing);
    until("it is slowed down", || (stage.quota("batch") != UNLIMITED).then_some(()));
    stage.forget_rule("busy");
    until("everything is given back", || (stage.quota("batch") == UNLIMITED).then_some(()));
    agent.until("throttled containers: 0");

    // Without the runtime, by the kernel's files alone.
    assert!(agent.ends());
    let agent = stage.agent(&["--act", "--actuator", "cgroup"]);
    stage.rule("busy", 400, "slow-down");
    until("it is slowed down", || (stage.quota("batch") != UNLIMITED).then_some(()));
    stage.until_journal_equals_cgroups(&["batch"]);
    stage.forget_rule("busy");
    until("everything is given back", || (stage.quota("batch") == UNLIMITED).then_some(()));
    assert!(agent.ends());
}

#[test]
fn the_kubelet_and_the_agent_do_not_fight_over_a_quota() {
    let _alone = alone();
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    stage.run_limited("batch", "600", "800m");
    assert_eq!(stage.quota("batch"), 80_000, "what the kubelet wrote: 800m of 100 000 µs");
    let agent = stage.agent(&["--act"]);
    stage.throttle_above(400, 40);
    until("it is slowed down", || (stage.quota("batch") < 80_000).then_some(()));
    let looks = || agent.sum("loadline_agent_cycles_total");
    // Whatever makes the kubelet look at the pod again, it does not write what it wrote before.
    let (path, from) = ("/api/v1/namespaces/default/pods/batch", looks());
    while looks() < from + 10.0 {
        plane.patch(path, &json!({"metadata": {"labels": {"look": format!("{}", looks())}}})).unwrap();
        // How far down it is by now depends on what the samples showed; the kubelet's value is what must not come back.
        let quota = stage.quota("batch");
        assert!(quota < 80_000, "{quota}");
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let resize = |limit: &str| {
        let mut containers = stage.pod("batch")["spec"]["containers"].clone();
        containers[0]["resources"]["limits"]["cpu"] = json!(limit);
        plane.patch(&format!("{path}/resize"), &json!({"spec": {"containers": containers}})).unwrap();
    };
    // Somebody resizes the pod while it is slowed down: what the kubelet writes then is what it gets back, and it is slowed down from there.
    resize("750m");
    until("the new limit is what will be given back", || {
        let journal = stage.journal();
        (journal["state"]["throttled"][0]["originalQuotaUs"] == 75_000).then_some(())
    });
    until("it is slowed down from there", || (stage.quota("batch") < 75_000).then_some(()));
    // The same while nobody is there to see it: it is not what was taken, and stays.
    agent.signal("KILL");
    drop(agent);
    stage.forget_rule("busy");
    resize("700m");
    until("the kubelet resizes it", || (stage.quota("batch") == 70_000).then_some(()));
    let agent = stage.agent(&["--act"]);
    agent.until("throttled containers: 0");
    until("nothing is remembered", || stage.noted("batch").is_none().then_some(()));
    assert_eq!(stage.quota("batch"), 70_000);
}
