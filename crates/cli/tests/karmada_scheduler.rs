//! The unmodified karmada-scheduler asks `loadline estimator`, one process for two real clusters, and divides replicas
//! by what it says.
//!
//! Cluster a has ten nodes of 8 cpu, b has two of 16. Everything else is in the comments of [`Stage::tell`].

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{Replica, replicas_request};
use loadline_testkit::karmada::{self, Channel, Decision, Karmada, Pair, Scheduler, Version};
use loadline_testkit::{ControlPlane, Running};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tokio::runtime::Runtime;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Two clusters: a's API server is also the one the scheduler works on.
struct Fleet {
    a: ControlPlane,
    b: ControlPlane,
}

impl Fleet {
    fn start_or_skip() -> Option<Self> {
        let fleet = Self { a: karmada::plane_or_skip()?, b: ControlPlane::start_or_skip()? };
        for (plane, count, cpu) in [(&fleet.a, 10, 8), (&fleet.b, 2, 16)] {
            let room = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
            for index in 0..count {
                plane.add_node(&node(index), &Value::Null, &room).unwrap();
            }
        }
        Some(fleet)
    }

    /// Our estimator for both, ready.
    fn estimator(&self, channel: &Channel) -> Running {
        let binary = Path::new(env!("CARGO_BIN_EXE_loadline"));
        let running = Running::start("loadline", binary, |port| {
            let mut flags = vec![
                "estimator".to_owned(),
                format!("--cluster=a={}", self.a.kubeconfig().display()),
                format!("--cluster=b={}", self.b.kubeconfig().display()),
                "--bind-address=127.0.0.1".into(),
                format!("--server-port={port}"),
                "--health-probe-bind-address=0".into(),
                "--metrics-bind-address=0".into(),
            ];
            if let Channel::Mutual(pair) = channel {
                flags.push(format!("--grpc-auth-cert-file={}", pair.certificate.display()));
                flags.push(format!("--grpc-auth-key-file={}", pair.key.display()));
                flags.push(format!("--grpc-client-ca-file={}", pair.authority.display()));
            }
            flags
        });
        let running = running.unwrap();
        running.wait_until(|said| said.contains("ready clusters=2 nodes=12")).unwrap();
        running
    }

    fn mutual(&self) -> Channel {
        Channel::Mutual(Pair::of(&self.a))
    }
}

fn node(index: usize) -> String {
    format!("node-{index}")
}

/// What a cluster of so many nodes of that size says of itself: the sums.
fn summary(nodes: u32, cpu: u32) -> Value {
    let sum = |each: u32| (nodes * each).to_string();
    json!({"allocatable": {"cpu": sum(cpu), "memory": format!("{}Gi", nodes * 64), "pods": sum(110)}})
}

/// Requirements: so much cpu on nodes with that label.
fn asks(cpu: &str, label: Option<(&str, &str)>) -> Value {
    let mut requirements = json!({"resourceRequest": {"cpu": cpu}});
    if let Some((key, value)) = label {
        requirements["nodeClaim"] = json!({"nodeSelector": {key: value}});
    }
    requirements
}

/// Replicas spread over all clusters, by how many each has room for.
fn weighted() -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"}}})
}

fn clusters(decision: &Decision) -> Vec<(&str, i64)> {
    decision.clusters.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect()
}

/// A fleet with our estimator, and a scheduler that asks it.
struct Stage<'a> {
    fleet: &'a Fleet,
    scheduler: Scheduler<'a>,
    estimator: Running,
    /// Asks our estimator as the scheduler does.
    client: EstimatorClient<tonic::transport::Channel>,
    runtime: Runtime,
    /// Names of bindings begin with it.
    prefix: &'a str,
}

impl<'a> Stage<'a> {
    fn start(
        fleet: &'a Fleet,
        karmada: Karmada<'a>,
        prefix: &'a str,
        version: Version,
        channel: &Channel,
        flags: &[&str],
    ) -> Self {
        let estimator = fleet.estimator(channel);
        for cluster in ["a", "b"] {
            karmada.move_estimator(cluster, estimator.port()).unwrap();
        }
        let scheduler = karmada.scheduler(version, channel, flags).unwrap();
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(connect(estimator.port(), channel));
        Self { fleet, scheduler, estimator, client, runtime, prefix }
    }

    fn decide(&self, name: &str, replicas: i64, requirements: &Value, placement: &Value) -> Decision {
        let name = format!("{}-{name}", self.prefix);
        self.scheduler.bind(&karmada::deployment(&name, replicas, requirements, placement)).unwrap()
    }

    /// One replica of that sort goes to that cluster, and three are too many for both.
    fn one_goes_to_b(&self, story: &str, requirements: &Value) {
        let one = self.decide(story, 1, requirements, &karmada::aggregated());
        assert_eq!(clusters(&one), [("b", 1)], "{story}: {one:?}");
        assert_eq!(one.reason, "Success");
        let three = self.decide(&format!("{story}-three"), 3, requirements, &karmada::aggregated());
        assert_eq!(clusters(&three), [], "{story}: b has room for two only: {three:?}");
        assert!(three.message.contains("available replicas 2 are not enough to schedule"), "{three:?}");
    }

    /// Story 1. One replica of 12 cpu. By sums a has room for ⌊80/12⌋ = 6 and b for ⌊32/12⌋ = 2, and a would be
    /// taken, where the pod would wait for ever. By nodes a has room for 10 × ⌊8/12⌋ = 0, b for 2 × ⌊16/12⌋ = 2.
    fn large_replicas(&self) {
        self.one_goes_to_b("large", &asks("12", None));
        for cluster in ["a", "b"] {
            assert!(self.scheduler.is_connected(cluster), "{}", self.scheduler.running().output());
        }
    }

    /// Two replicas of 9 cpu go to b, one to each node, and are promised until their pods are there: of its 32 cpu,
    /// 14 are left by the sums, where one of 8 would fit. By nodes 7 are left on each, where none does.
    fn promised(&self) {
        let mut only_b = karmada::aggregated();
        only_b["clusterAffinity"] = json!({"clusterNames": ["b"]});
        let first = self.decide("promised", 2, &asks("9", None), &only_b);
        assert_eq!(clusters(&first), [("b", 2)], "{first:?}");
        let second = self.decide("too-late", 1, &asks("8", None), &only_b);
        assert_eq!(clusters(&second), [], "{second:?}");
        assert!(second.message.contains("available replicas 0 are not enough to schedule"), "{second:?}");
    }

    /// Everything, in order: each part leaves the clusters as the next wants them.
    fn tell(&self) {
        self.large_replicas();

        // 12 replicas of 3 cpu by weight. By sums, ⌊80/3⌋ = 26 and ⌊32/3⌋ = 10, it would be 12 × 26/36 = 8.7 and
        // 12 × 10/36 = 3.3, so 8 and 3, and the one that is left goes to the heavier: 9 and 3. By nodes,
        // 10 × ⌊8/3⌋ = 20 and 2 × ⌊16/3⌋ = 10, it is 12 × 20/30 = 8 and 12 × 10/30 = 4.
        let many = self.decide("many", 12, &asks("3", None), &weighted());
        assert_eq!(clusters(&many), [("a", 8), ("b", 4)], "{many:?}");

        self.cordon();
        self.labels();
    }

    /// One replica of 5 cpu on fast nodes: two of a's, 2 × ⌊8/5⌋ = 2, and one of b's, ⌊16/5⌋ = 3. Then b's is cordoned.
    fn cordon(&self) {
        let fast = json!({"metadata": {"labels": {"fast": "yes"}}});
        for (plane, index) in [(&self.fleet.a, 0), (&self.fleet.a, 1), (&self.fleet.b, 0)] {
            plane.patch(&format!("/api/v1/nodes/{}", node(index)), &fast).unwrap();
        }
        let label = Some(("fast", "yes"));
        self.wait_for("a", "5", label, 2);
        self.wait_for("b", "5", label, 3);
        let before = self.decide("fast", 1, &asks("5", label), &karmada::aggregated());
        assert_eq!(clusters(&before), [("b", 1)], "{before:?}");

        let node = format!("/api/v1/nodes/{}", node(0));
        self.fleet.b.patch(&node, &json!({"spec": {"unschedulable": true}})).unwrap();
        self.wait_for("b", "5", label, 0);
        let after = self.decide("fast-elsewhere", 1, &asks("5", label), &karmada::aggregated());
        assert_eq!(clusters(&after), [("a", 1)], "{after:?}");
        self.fleet.b.patch(&node, &json!({"spec": {"unschedulable": false}})).unwrap();
    }

    /// Story 2. Now a has ten nodes of 16 cpu, too, but those of b have the label that is asked for: by sums
    /// ⌊160/12⌋ = 13 and ⌊32/12⌋ = 2, by nodes 0 and 2.
    fn labels(&self) {
        let size = json!({"status": {"capacity": {"cpu": "16"}, "allocatable": {"cpu": "16"}}});
        for index in 0..10 {
            self.fleet.a.patch(&format!("/api/v1/nodes/{}/status", node(index)), &size).unwrap();
        }
        for index in 0..2 {
            let label = json!({"metadata": {"labels": {"key": "value"}}});
            self.fleet.b.patch(&format!("/api/v1/nodes/{}", node(index)), &label).unwrap();
        }
        let status = json!({"status": {"resourceSummary": summary(10, 16)}});
        self.fleet.a.patch("/apis/cluster.karmada.io/v1alpha1/clusters/a/status", &status).unwrap();
        self.wait_for("a", "12", None, 10);
        self.wait_for("b", "12", Some(("key", "value")), 2);
        self.one_goes_to_b("labelled", &asks("12", Some(("key", "value"))));
    }

    /// Waits until our estimator has heard of what was just changed.
    fn wait_for(&self, cluster: &str, cpu: &str, label: Option<(&str, &str)>, expected: i32) {
        let replica = Replica {
            selector: label.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect(),
            requests: [("cpu".to_owned(), cpu.parse().unwrap())].into(),
            ..Replica::default()
        };
        let request = replicas_request(cluster, Some(&replica), &[]);
        let ask = async || {
            let answer = self.client.clone().max_available_replicas(request.clone()).await;
            answer.unwrap().into_inner().max_replicas
        };
        self.estimator.wait_until(|_| self.runtime.block_on(ask()) == expected).unwrap();
    }
}

async fn connect(port: u16, channel: &Channel) -> EstimatorClient<tonic::transport::Channel> {
    let endpoint = match channel {
        Channel::Plain => Endpoint::from_shared(format!("http://localhost:{port}")).unwrap(),
        Channel::Mutual(pair) => {
            let read = |path: &Path| fs::read(path).unwrap();
            let tls = ClientTlsConfig::new()
                .ca_certificate(Certificate::from_pem(read(&pair.authority)))
                .identity(Identity::from_pem(read(&pair.certificate), read(&pair.key)));
            let endpoint = Endpoint::from_shared(format!("https://localhost:{port}")).unwrap();
            endpoint.tls_config(tls).unwrap()
        }
    };
    EstimatorClient::new(endpoint.connect().await.unwrap())
}

/// Registers both clusters. Without estimators the scheduler divides by sums: what [`Stage::tell`] says they give.
fn register(fleet: &Fleet, version: Version) -> Karmada<'_> {
    let karmada = Karmada::install(&fleet.a).unwrap();
    // Where nobody listens: every stage has an estimator of its own.
    karmada.cluster("a", &summary(10, 8), 1).unwrap();
    karmada.cluster("b", &summary(2, 16), 1).unwrap();
    let flags = ["--enable-scheduler-estimator=false"];
    let scheduler = karmada.scheduler(version, &Channel::Plain, &flags).unwrap();
    let bind = |name: &str, replicas, cpu: &str, placement: &Value| {
        scheduler.bind(&karmada::deployment(name, replicas, &asks(cpu, None), placement)).unwrap()
    };
    let large = bind("sums-large", 1, "12", &karmada::aggregated());
    assert_eq!(clusters(&large), [("a", 1)], "{large:?}");
    let many = bind("sums-many", 12, "3", &weighted());
    assert_eq!(clusters(&many), [("a", 9), ("b", 3)], "{many:?}");
    karmada
}

#[test]
fn karmada_1_17_divides_by_our_answers() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    let version = Version::V1_17;
    let karmada = register(&fleet, version);
    Stage::start(&fleet, karmada, "mutual", version, &fleet.mutual(), &[]).large_replicas();
    Stage::start(&fleet, karmada, "plain", version, &Channel::Plain, &[]).tell();
}

#[test]
fn karmada_1_18_divides_by_our_answers() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    let version = Version::V1_18;
    let karmada = register(&fleet, version);
    let gate = "--feature-gates=SchedulingOvercommitProtection=true";
    Stage::start(&fleet, karmada, "plain", version, &Channel::Plain, &[gate]).promised();
    Stage::start(&fleet, karmada, "mutual", version, &fleet.mutual(), &[]).tell();
}
