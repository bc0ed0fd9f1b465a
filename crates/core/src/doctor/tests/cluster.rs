//! What is found about the cluster: reads, versions, others, clocks, kinds, permissions, leases, certificates.

use super::*;

#[test]
fn what_cannot_be_read_is_told_once_and_stops_nothing() {
    let denied = || failed(Why::Denied);
    table([
        (
            "nodes are denied",
            &|f| f.nodes = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "this account may not read nodes: the server said so")),
        ),
        (
            "nodes are late",
            &|f| f.nodes = Known::Failed(failed(Why::Failed)),
            Some((Severity::Broken, "reads", "nodes could not be read")),
        ),
        ("nobody asked", &|f| f.nodes = Known::Unasked, None),
        (
            "leases are denied",
            &|f| f.leases = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "leases")),
        ),
        (
            "measurements are denied",
            &|f| f.metrics = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "measurements")),
        ),
        (
            "definitions are denied",
            &|f| f.definitions = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "definitions")),
        ),
        (
            "deployments are denied",
            &|f| f.workloads = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "deployments")),
        ),
        (
            "reviews are denied",
            &|f| f.permissions = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "what accounts may do")),
        ),
        (
            "rules of agents are denied",
            &|f| f.lines = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "rules of agents")),
        ),
        ("there is no such kind", &|f| f.lines = Known::Failed(failed(Why::Missing)), None),
        (
            "recommendations are denied",
            &|f| f.recommendations = Known::Failed(denied()),
            Some((Severity::Warning, "reads", "recommendations")),
        ),
        ("there is no such kind either", &|f| f.recommendations = Known::Failed(failed(Why::Missing)), None),
        (
            "the server does not say what it is",
            &|f| f.server = Known::Failed(failed(Why::Failed)),
            Some((Severity::Broken, "reads", "version of the API server")),
        ),
    ]);
    let mut facts = healthy();
    facts.nodes = Known::Failed(denied());
    facts.leases = Known::Failed(denied());
    let all = examine(&facts);
    assert!(all.iter().any(|one| one.what.contains("2 could not be seen")), "{all:#?}");
    assert!(all.iter().any(|one| one.check == "definitions"), "others go on");
}

fn server(f: &mut Facts, number: Option<(u32, u32)>, off: i64) {
    let server = read(&mut f.server);
    server.number = number;
    server.clock = Some((now() + SignedDuration::from_secs(off), now()));
}

#[test]
fn a_cluster_that_is_too_old() {
    table([
        ("1.29", &|f| server(f, Some((1, 29)), 0), Some((Severity::Broken, "version", "older than 1.30"))),
        ("1.30", &|f| server(f, Some((1, 30)), 0), None),
        ("2.0", &|f| server(f, Some((2, 0)), 0), None),
        ("who knows", &|f| server(f, None, 0), Some((Severity::Warning, "version", "is no number"))),
    ]);
}

#[test]
fn clocks_that_differ() {
    let ahead = |seconds: i64| now() + SignedDuration::from_secs(seconds);
    table([
        (
            "by half a minute and a bit",
            &|f| server(f, Some((1, 34)), -31),
            Some((Severity::Broken, "clock", "31 s behind the one here")),
        ),
        (
            "by some seconds",
            &|f| server(f, Some((1, 34)), 6),
            Some((Severity::Warning, "clock", "6 s ahead of the one here")),
        ),
        ("by what an answer takes", &|f| server(f, Some((1, 34)), 5), None),
        (
            "a kubelet is ahead",
            &|f| read(&mut f.leases)[0].renewed = Some(ahead(40)),
            Some((Severity::Broken, "clock", "1 node bears stamps from the future, up to 40 s: n1")),
        ),
        (
            "a measurement is a little ahead",
            &|f| read(&mut f.metrics)[1].1.at = ahead(6),
            Some((Severity::Warning, "clock", "up to 6 s: n2")),
        ),
        ("not to speak of", &|f| read(&mut f.metrics)[1].1.at = ahead(5), None),
        (
            "of a node that does not matter, another's lease",
            &|f| {
                read(&mut f.leases).push(lease("default", "x", "x", ahead(40)));
            },
            None,
        ),
    ]);
    // Where only our clock is wrong, nodes are not blamed.
    let mut facts = healthy();
    server(&mut facts, Some((1, 34)), 3_600);
    read(&mut facts.metrics)[0].1.at = ahead(3_590);
    let found = bad(&facts);
    assert!(!found.iter().any(|one| one.what.contains("future")), "{found:#?}");
}

#[test]
fn ages_go_by_the_clock_of_the_server_and_not_by_that_of_a_laptop() {
    for off in [-600, 600] {
        let mut facts = healthy();
        // What is there was stamped by clocks that agree with the server's.
        server(&mut facts, Some((1, 34)), off);
        let shift = SignedDuration::from_secs(off);
        for (_, sample) in read(&mut facts.metrics) {
            sample.at += shift;
        }
        for lease in read(&mut facts.leases) {
            lease.renewed = lease.renewed.map(|at| at + shift);
        }
        let found = bad(&facts);
        let [one] = &found[..] else { panic!("{off}: {found:#?}") };
        assert!(one.check == "clock" && one.what.contains("10 min"), "{off}: {one:#?}");
    }
    // What is old is not young because the clock here is behind.
    let mut facts = healthy();
    server(&mut facts, Some((1, 34)), 600);
    let found = bad(&facts);
    assert!(found.iter().any(|one| one.what.contains("2 of 2 nodes have old measurements")), "{found:#?}");
}

#[test]
fn a_node_whose_clock_is_behind_is_ready_with_a_lease_that_looks_dead() {
    table([
        (
            "ready: it renews",
            &|f| read(&mut f.leases)[0].renewed = Some(ago(300)),
            Some((
                Severity::Broken,
                "clock",
                "1 node is ready, and has a lease that was last renewed up to 5 min ago by its own clock: n1",
            )),
        ),
        ("it may have stopped just now", &|f| read(&mut f.leases)[0].renewed = Some(ago(110)), None),
        (
            "it is down, and renews nothing",
            &|f| {
                read(&mut f.leases)[0].renewed = Some(ago(300));
                read(&mut f.nodes)[0].ready = Some(false);
            },
            None,
        ),
    ]);
}

fn workload(image: &str, words: &[&str], replicas: i64) -> Workload {
    Workload {
        kind: "Deployment".to_owned(),
        key: Key::new("a", "d"),
        replicas,
        account: "default".to_owned(),
        images: vec![image.to_owned()],
        words: vec![words.iter().map(|word| (*word).to_owned()).collect()],
    }
}

fn run(f: &mut Facts, image: &str, words: &[&str], replicas: i64) {
    f.workloads = Known::Read(vec![workload(image, words, replicas)]);
}

#[test]
fn others_that_do_the_same_work() {
    let annotator = "docker.io/gocrane/crane-scheduler-controller:0.0.23";
    table([
        (
            "crane's annotator",
            &|f| run(f, annotator, &["/controller"], 1),
            Some((Severity::Warning, "others", "crane's annotator runs: Deployment a/d")),
        ),
        (
            "before ours is installed",
            &|f| {
                run(f, annotator, &["/controller"], 1);
                f.preflight = true;
            },
            Some((Severity::Broken, "others", "crane's annotator")),
        ),
        (
            "before all but our annotator is installed",
            &|f| {
                run(f, annotator, &["/controller"], 1);
                f.preflight = true;
                f.without = [Component::Annotator].into();
            },
            Some((Severity::Warning, "others", "crane's annotator")),
        ),
        (
            "before our annotator is installed, and no scheduler",
            &|f| {
                run(f, annotator, &["/controller"], 1);
                f.preflight = true;
                f.without = [Component::Scheduler].into();
            },
            Some((Severity::Broken, "others", "crane's annotator")),
        ),
        (
            "scaled to nothing",
            &|f| {
                run(f, annotator, &["/controller"], 0);
                f.preflight = true;
            },
            None,
        ),
        (
            "known by its lease",
            &|f| {
                read(&mut f.leases).push(lease("crane-system", "crane-scheduler-controller", "c", ago(2)));
                f.preflight = true;
            },
            Some((Severity::Broken, "others", "by the lease crane-system/crane-scheduler-controller")),
        ),
        (
            "a lease that is over",
            &|f| {
                read(&mut f.leases).push(lease("crane-system", "crane-scheduler-controller", "c", ago(31)));
                f.preflight = true;
            },
            None,
        ),
        (
            "crane's scheduler, by its program",
            &|f| run(f, "registry.local:5000/mirror@sha256:00", &["/bin/crane-scheduler", "-v"], 1),
            Some((Severity::Warning, "others", "crane's scheduler runs")),
        ),
        (
            "crane's agent",
            &|f| run(f, "gocrane/crane-agent:v1", &[], 1),
            Some((Severity::Warning, "others", "crane's agent runs")),
        ),
        (
            "Karmada's estimator",
            &|f| run(f, "docker.io/karmada/karmada-scheduler-estimator:v1.17.0", &[], 2),
            Some((Severity::Warning, "others", "Karmada's estimator runs")),
        ),
        (
            "Karmada's scheduler, which asks it",
            &|f| run(f, "docker.io/karmada/karmada-scheduler:v1.17.0", &[], 2),
            None,
        ),
        ("somebody else's", &|f| run(f, "nginx", &["nginx"], 3), None),
    ]);
}

#[test]
fn kinds_that_are_missing_or_in_another_version() {
    let agent = |f: &mut Facts| run(f, "loadline", &["agent"], 1);
    table([
        ("none, and nobody needs any", &|f| read(&mut f.definitions).clear(), None),
        (
            "none, and an agent runs",
            &|f| {
                read(&mut f.definitions).retain(|one| !one.name.starts_with("podqoss"));
                agent(f);
            },
            Some((
                Severity::Broken,
                "definitions",
                "podqoss.ensurance.crane.io is not there, and `loadline agent` runs",
            )),
        ),
        ("all, and an agent runs", &|f| agent(f), None),
        (
            "another version",
            &|f| read(&mut f.definitions)[0].served = vec!["v1".to_owned()],
            Some((
                Severity::Broken,
                "definitions",
                "nodeqoss.ensurance.crane.io is served as v1, but v1alpha1 is what is read",
            )),
        ),
        ("another version as well", &|f| read(&mut f.definitions)[0].served.push("v1".to_owned()), None),
        (
            "names that are taken",
            &|f| {
                let one = &mut read(&mut f.definitions)[3];
                (one.established, one.trouble) = (false, Some("taken".to_owned()));
            },
            Some((
                Severity::Broken,
                "definitions",
                "recommendations.analysis.crane.io is not established: taken",
            )),
        ),
        (
            "an older Open Cluster Management",
            &|f| {
                read(&mut f.definitions).push(Definition {
                    name: "placements.cluster.open-cluster-management.io".to_owned(),
                    served: vec!["v1alpha1".to_owned()],
                    established: true,
                    trouble: None,
                });
            },
            Some((Severity::Broken, "definitions", "v1beta1 is what is read")),
        ),
    ]);
}

fn permission(account: &str, allowed: bool) -> Permission {
    let need = needs(Component::Scheduler, &[]).into_iter().find(|one| one.subresource == "binding").unwrap();
    Permission { account: account.to_owned(), component: Component::Scheduler, need, allowed }
}

#[test]
fn permissions_that_are_missing() {
    let account = "system:serviceaccount:kube-system:loadline-scheduler";
    table([
        (
            "one is",
            &|f| f.permissions = Known::Read(vec![permission(account, false), permission(account, true)]),
            Some((Severity::Broken, "permissions", "may not create pods/binding")),
        ),
        ("none is", &|f| f.permissions = Known::Read(vec![permission(account, true)]), None),
        (
            "of this account",
            &|f| f.own = Known::Read(vec![permission("", false)]),
            Some((Severity::Broken, "permissions", "`loadline scheduler` lacks permissions: this account")),
        ),
    ]);
    let mut facts = healthy();
    facts.permissions = Known::Read(vec![permission(account, false)]);
    assert_eq!(
        bad(&facts)[0].command,
        format!("kubectl auth can-i create pods --subresource=binding --as={account}")
    );
}

#[test]
fn what_a_component_needs_follows_from_its_flags() {
    let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let may = |component, flags: &str, need: &str| {
        needs(component, &words(flags)).iter().any(|one| one.to_string() == need)
    };
    for (component, flags, need, expected) in [
        (Component::Agent, "", "create pods/eviction", false),
        (Component::Agent, "--act", "create pods/eviction", true),
        (Component::Agent, "--act=false", "create pods/eviction", false),
        (Component::Scheduler, "--shadow", "create pods/binding", false),
        (Component::Scheduler, "", "list jobs.batch", true),
        (Component::Annotator, "", "get configmaps in kube-system", true),
        (Component::Annotator, "--history-namespace=here", "get configmaps in here", true),
        (Component::Annotator, "--no-metrics-api", "list nodes.metrics.k8s.io", false),
        (
            Component::Rebalance,
            "--leader-elect --leader-elect-resource-namespace x",
            "update leases.coordination.k8s.io in x",
            true,
        ),
        (Component::Rebalance, "", "update leases.coordination.k8s.io in kube-system", false),
        (Component::Estimator, "--load", "list nodes.metrics.k8s.io", true),
        (Component::Recommender, "", "delete recommendations.analysis.crane.io", true),
        (
            Component::Placement,
            "--api ocm",
            "update placements.cluster.open-cluster-management.io/finalizers",
            true,
        ),
        (Component::Binding, "--leader-elect", "update leases.coordination.k8s.io in kube-system", true),
        (Component::Publish, "--leader-elect", "update leases.coordination.k8s.io in kube-system", false),
        (Component::Dashboard, "", "list clusters.cluster.karmada.io", true),
        (Component::Dashboard, "--hub-kubeconfig=x", "list clusters.cluster.karmada.io", false),
    ] {
        assert_eq!(may(component, flags, need), expected, "{component} {flags}: {need}");
    }
}

#[test]
fn whose_account_matters_follows_from_the_flags() {
    for (component, flag, expected) in [
        (Component::Scheduler, "--leader-elect", true),
        (Component::Scheduler, "--kubeconfig=x", false),
        (Component::Binding, "--kubeconfig=hub", false),
        (Component::Publish, "--kubeconfig=hub", true),
        (Component::Publish, "--member-kubeconfig=m1", false),
        (Component::Publish, "--member=m1=m1.kubeconfig", false),
        (Component::Estimator, "--cluster-name=m1", true),
        (Component::Estimator, "--cluster-dir=x", false),
        (Component::Estimator, "--cluster=m1=x", false),
        (Component::Dashboard, "--hub-kubeconfig=hub", true),
    ] {
        assert_eq!(component.is_itself(&[flag.to_owned()]), expected, "{component} {flag}");
    }
}

#[test]
fn a_component_is_known_by_its_image_or_program() {
    for (image, words, expected) in [
        ("loadline", &["scheduler", "--act"][..], Some(Component::Scheduler)),
        ("registry.local/loadline:1", &["agent"], Some(Component::Agent)),
        ("mirror", &["/usr/bin/loadline", "annotator"], Some(Component::Annotator)),
        ("mirror", &["annotator"], None),
        ("loadline", &["fleet", "--api", "ocm"], Some(Component::Placement)),
        ("loadline", &["fleet", "--api=karmada"], Some(Component::Binding)),
        ("loadline", &["fleet", "--publish", "--cluster-name=m1"], Some(Component::Publish)),
        ("loadline", &["fleet", "--api=x"], None),
        ("loadline", &["fleet"], None),
        ("loadline", &["dashboard", "--name=x"], Some(Component::Dashboard)),
        ("loadline", &["up"], None),
        ("loadline", &[], None),
    ] {
        let workload = workload(image, words, 1);
        assert_eq!(Component::of(&workload).map(|(one, _)| one), expected, "{image} {words:?}");
    }
}

#[test]
fn two_who_lead_the_same_work_and_nobody_who_does() {
    let lead = |f: &mut Facts, namespace: &str, name: &str, seconds: i64| {
        // What it would write does not matter here.
        f.nodes = Known::Read(Vec::new());
        read(&mut f.leases).push(lease(namespace, name, "somebody", ago(seconds)));
    };
    table([
        (
            "two schedulers",
            &|f| {
                lead(f, "a", "loadline-scheduler", 2);
                lead(f, "b", "loadline-scheduler", 3);
            },
            Some((
                Severity::Broken,
                "agreement",
                "2 lead the same work at once: somebody (a/loadline-scheduler), somebody (b/",
            )),
        ),
        (
            "one of them long ago",
            &|f| {
                lead(f, "a", "loadline-scheduler", 2);
                lead(f, "b", "loadline-scheduler", 3_600);
            },
            None,
        ),
        (
            "a scheduler and a rebalancer",
            &|f| {
                lead(f, "a", "loadline-scheduler", 2);
                lead(f, "a", "loadline-rebalance", 2);
            },
            None,
        ),
        (
            "nobody",
            &|f| lead(f, "a", "loadline-scheduler", 31),
            Some((Severity::Warning, "agreement", "nobody leads by the lease a/loadline-scheduler")),
        ),
        (
            "nobody, after an orderly end",
            &|f| {
                lead(f, "a", "loadline-scheduler", 31);
                read(&mut f.leases).last_mut().unwrap().holder = None;
            },
            None,
        ),
    ]);
    // That crane's annotator runs is told; that ours does, too, is what is wrong.
    let mut facts = healthy();
    lead(&mut facts, "a", "loadline-annotator", 2);
    lead(&mut facts, "b", "crane-scheduler-controller", 2);
    let found = bad(&facts);
    let checks: Vec<(&str, Severity)> = found.iter().map(|one| (one.check, one.severity)).collect();
    assert_eq!(checks, [("agreement", Severity::Broken), ("others", Severity::Warning)]);
}

#[test]
fn certificates_that_end() {
    let with = |from: &str, since: i64, left: i64| Certificate {
        from: from.to_owned(),
        good: Ok((ago(since), ago(-left))),
    };
    let day = 86_400;
    table([
        (
            "yesterday",
            &|f| f.certificates = vec![with("e:10352", 9 * day, -day)],
            Some((Severity::Broken, "certificates", "the certificate of e:10352 ended 24 h ago")),
        ),
        (
            "in thirteen days",
            &|f| f.certificates = vec![with("e:10352", day, 13 * day)],
            Some((Severity::Warning, "certificates", "ends in 13 days")),
        ),
        ("in fourteen", &|f| f.certificates = vec![with("e:10352", day, 14 * day)], None),
        (
            "not good yet",
            &|f| f.certificates = vec![with("tls.crt", -3_600, 90 * day)],
            Some((Severity::Broken, "certificates", "is not good for another 60 min")),
        ),
        (
            "nobody listens",
            &|f| {
                f.certificates =
                    vec![Certificate { from: "e:1".to_owned(), good: Err("refused".to_owned()) }];
            },
            Some((Severity::Broken, "certificates", "no certificate from e:1: refused")),
        ),
    ]);
}
