//! What does the chart come to? Rendered by a real Helm, taken by a real API server, and refused where values are wrong. That the
//! plain files in `deploy/` are made from it is compared by `cargo xtask test`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/account.rs"]
mod account;
#[path = "common/service.rs"]
mod service;

use account::least_privilege;
use loadline_testkit::install::{self, chart};
use loadline_testkit::{ControlPlane, parts};
use serde_json::{Value, json};
use service::until;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KINDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Everything on, and able to act.
const ALL: &[&str] = &[
    "scheduler.mode=active",
    "agent.act=true",
    "rebalance.enabled=true",
    "rebalance.act=true",
    "annotator.taints=true",
    "annotator.prometheus=http://prometheus:9090",
    "estimator.enabled=true",
    "estimator.clusterName=m1",
    "estimator.load=true",
    "estimator.secretName=tls",
    "fleet.enabled=true",
    "dashboard.enabled=true",
    "dashboard.secretName=tls",
    "dashboard.tokenSecret=token",
    POLICY,
    "scheduler.config=apiVersion: loadline.dev/v1alpha1\nkind: SchedulerConfiguration",
    "rebalance.settings=apiVersion: loadline.dev/v1alpha1\nkind: RebalanceSettings",
];

const POLICY: &str = "policy=apiVersion: loadline.dev/v1alpha1\nkind: LoadSettings";

/// The other ways of what has several.
const OTHERS: &[&str] = &[
    "scheduler.mode=extender",
    "fleet.enabled=true",
    "fleet.api=karmada",
    "dashboard.enabled=true",
    "estimator.enabled=true",
    "estimator.kubeconfigsSecret=clusters",
    "estimator.allowPlaintext=true",
    "rebalance.enabled=true",
    POLICY,
    "kubernetes.host=10.0.0.1",
    "kubernetes.port=6443",
    "log.verbosity=2",
];

/// With what other operators make: certificates by cert-manager, metrics collected by Prometheus'.
const CERTIFIED: &[&str] = &[
    "serviceMonitor.enabled=true",
    "serviceMonitor.interval=15s",
    "serviceMonitor.labels.release=prometheus",
    "certManager.enabled=true",
    "certManager.issuerRef.name=issuer",
    "scheduler.mode=extender",
    "rebalance.enabled=true",
    "estimator.enabled=true",
    "estimator.clusterName=m1",
    "estimator.secretName=estimator-tls",
    "fleet.enabled=true",
    "dashboard.enabled=true",
    "dashboard.secretName=dashboard-tls",
    "dashboard.tokenSecret=token",
];

fn template(helm: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(helm);
    command
        .args(["template", "loadline"])
        .arg(chart())
        .args(["-n", "loadline-system", "--kube-version", "1.36"])
        .args(more);
    command.output().unwrap()
}

fn objects(helm: &Path, more: &[&str]) -> Vec<Value> {
    let output = template(helm, more);
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("\n---").filter(|text| text.contains("\nkind:"));
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

fn set<'a>(values: &[&'a str]) -> Vec<&'a str> {
    values.iter().flat_map(|value| ["--set", value]).collect()
}

fn migrations() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(chart().join("migrate")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// All that is tried, with what it is called.
fn cases() -> Vec<(String, Vec<String>)> {
    let owned = |values: &[&str]| set(values).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut cases = vec![
        ("as it is".to_owned(), Vec::new()),
        ("everything".to_owned(), owned(ALL)),
        ("otherwise".to_owned(), owned(OTHERS)),
        (
            "publish".to_owned(),
            owned(&[
                "fleet.enabled=true",
                "fleet.api=publish",
                "fleet.clusterName=m1",
                "fleet.kubeconfigSecret=hub",
            ]),
        ),
    ];
    cases.push(("watched and certified".to_owned(), owned(CERTIFIED)));
    cases.push(("asked before upgrades".to_owned(), owned(&["preflight.upgrades=true"])));
    cases.extend(migrations().into_iter().map(|file| {
        (
            file.file_name().unwrap().to_string_lossy().into_owned(),
            vec!["--values".to_owned(), file.display().to_string()],
        )
    }));
    cases
}

/// The kinds of other operators, as far as we use them: a field that is not here is refused.
fn foreign_kinds(plane: &ControlPlane) {
    let text = json!({"type": "string", "minLength": 1});
    let texts = json!({"type": "object", "additionalProperties": text});
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
    let selector = object(&["matchLabels"], json!({"matchLabels": texts}));
    let endpoint = object(
        &["port"],
        json!({"port": text, "path": text, "interval": {"type": "string", "pattern": "^[0-9]+s$"}}),
    );
    let monitor =
        json!({"selector": selector, "endpoints": {"type": "array", "minItems": 1, "items": endpoint}});
    let issuer = object(&["name"], json!({"name": text, "kind": text, "group": text}));
    let names = json!({"type": "array", "minItems": 1, "items": text});
    let certificate = json!({"secretName": text, "dnsNames": names, "issuerRef": issuer});
    for (group, plural, kind, required, spec) in [
        ("monitoring.coreos.com", "servicemonitors", "ServiceMonitor", ["selector", "endpoints"], monitor),
        ("cert-manager.io", "certificates", "Certificate", ["secretName", "issuerRef"], certificate),
    ] {
        let schema = object(&["spec"], json!({"spec": object(&required, spec)}));
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "versions": [version],
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind}},
        });
        plane.create(KINDS, &definition).unwrap();
        let path = format!("/apis/{group}/v1/{plural}");
        until("the kind is served", || plane.get(&path).ok());
    }
}

#[test]
fn an_api_server_takes_what_it_is_rendered_to() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    // The one it is installed in, and the one OCM's lease is in.
    for name in ["loadline-system", "open-cluster-management-hub"] {
        plane.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).unwrap();
    }
    foreign_kinds(&plane);
    for (name, args) in cases() {
        // What is rendered for others is the same, as another test says.
        for version in ["1.30", "1.36"] {
            let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
            args.extend(["--kube-version", version]);
            let all = objects(&helm, &args);
            assert!(all.len() > 4, "{name}");
            for object in all {
                let (api, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
                let group = if api == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api}") };
                let namespace = object["metadata"]["namespace"].as_str();
                let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
                let plural = match kind {
                    "NetworkPolicy" => "networkpolicies".to_owned(),
                    "PriorityClass" => "priorityclasses".to_owned(),
                    kind => format!("{}s", kind.to_lowercase()),
                };
                let path = format!("{group}{namespace}/{plural}?dryRun=All&fieldValidation=Strict");
                let reply = plane.request("POST", &path, Some(&object)).unwrap();
                assert_eq!(reply.status, 201, "{name} {kind}: {}", String::from_utf8_lossy(&reply.body));
            }
        }
    }
}

#[test]
fn wrong_values_are_refused_with_their_path() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    for (value, path, why) in [
        ("scheduler.mode=passive", "/scheduler/mode", "one of three"),
        ("scheduler.replicas=0", "/scheduler/replicas", "at least one"),
        ("agent.enabled=perhaps", "/agent/enabled", "a boolean"),
        ("agent.runtimeSocket=run/x.sock", "/agent/runtimeSocket", "an absolute path"),
        ("agent.interval=often", "/agent/interval", "a time"),
        ("schedular.enabled=true", "schedular", "a name nobody knows"),
        ("image.digest=abc", "/image/digest", "a digest"),
        ("annotator.prometheus=prometheus:9090", "/annotator/prometheus", "an address"),
        ("estimator.enabled=true", "estimator.clusterName", "which cluster"),
        ("fleet.enabled=true,fleet.api=publish", "fleet.clusterName", "which cluster"),
        ("preflight.upgrades=sometimes", "/preflight/upgrades", "a boolean"),
        (
            "certManager.enabled=true,scheduler.mode=extender",
            "certManager.issuerRef.name",
            "whose certificates",
        ),
        ("hooks.activeDeadlineSeconds=0", "/hooks/activeDeadlineSeconds", "a time"),
        ("policy=x", "policy: document 1: ", "a document"),
        ("policy=# none", "policy: expected a document, found none", "a document"),
        (
            "policy=---\n# mine\n--- # first\napiVersion: v1\nkind: ConfigMap",
            "policy: document 1: kind: expected DynamicSchedulerPolicy or LoadSettings, found ConfigMap",
            "of a kind that says something about load",
        ),
        (
            "policy=apiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\n---\nkind: DynamicSchedulerPolicy",
            "policy: document 2: apiVersion: expected scheduler.policy.crane.io/v1alpha1, found none",
            "in a version that is known",
        ),
        (
            "policy=apiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\nspec: none",
            "policy: document 1: spec: expected a mapping, found string",
            "that says something",
        ),
        (
            "policy=apiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\n---\napiVersion: loadline.dev/v1alpha1\nkind: LoadSettings",
            "policy: document 2: kind: expected one LoadSettings, found another",
            "once",
        ),
        (
            "scheduler.config=apiVersion: loadline.dev/v1alpha1\nkind: LoadSettings",
            "scheduler.config: document 1: kind: expected SchedulerConfiguration, found LoadSettings",
            "a configuration",
        ),
        ("rebalance.enabled=true,rebalance.settings=a: [", "rebalance.settings: document 1: ", "YAML"),
    ] {
        let output = template(&helm, &["--set", value]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{value}: {why}");
        assert!(said.contains(path), "{value}: {said}");
    }
}

#[test]
fn containers_say_what_the_program_understands_and_none_acts_unasked() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let mut seen = 0;
    for (name, args) in cases() {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        for object in objects(&helm, &args) {
            let containers = object["spec"]["template"]["spec"]["containers"].as_array().cloned();
            for container in containers.into_iter().flatten() {
                let args: Vec<&str> =
                    container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
                // What is before it has to be understood for this.
                let output =
                    Command::new(env!("CARGO_BIN_EXE_loadline")).args(&args).arg("--help").output().unwrap();
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                assert!(name == "everything" || !args.contains(&"--act"), "{name}");
                let security = &container["securityContext"];
                assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
                assert_eq!(security["capabilities"]["drop"], json!(["ALL"]), "{name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn the_kinds_are_those_in_deploy_and_stay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files: Vec<_> =
        fs::read_dir(chart().join("files/crds")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 4);
    for file in files {
        let ours = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap();
        let hint =
            "cp deploy/crds/{nodeqoss,podqoss,avoidanceactions,recommendations}.yaml deploy/chart/files/crds";
        assert_eq!(ours, fs::read_to_string(folder.join("crds").join(name)).unwrap(), "{hint}");
    }
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let kept = objects(&helm, &[]).into_iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    let kept: Vec<_> =
        kept.map(|object| object["metadata"]["annotations"]["helm.sh/resource-policy"].clone()).collect();
    assert_eq!(kept, vec![json!("keep"); 4]);
}

/// The pods that are run, with what runs them.
fn pods(all: &[Value]) -> Vec<(&Value, &Value)> {
    let runs =
        |object: &&Value| ["Deployment", "DaemonSet", "Job"].map(Value::from).contains(&object["kind"]);
    all.iter().filter(runs).map(|object| (object, &object["spec"]["template"]["spec"])).collect()
}

fn named<'a>(all: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// Does the selector choose what has these labels?
fn chooses(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object().unwrap();
    !wanted.is_empty() && wanted.iter().all(|(name, value)| labels[name] == *value)
}

#[test]
fn every_version_that_is_supported_is_rendered_alike_and_an_older_one_is_refused() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    for (name, args) in cases() {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let newest = objects(&helm, &args);
        for minor in 30..36 {
            let version = format!("1.{minor}");
            let all = objects(&helm, &[&args[..], &["--kube-version", &version]].concat());
            assert_eq!(all, newest, "{name} on {version}");
        }
    }
    let output = template(&helm, &["--kube-version", "1.29.14"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(">=1.30"), "{said}");
}

#[test]
fn no_pod_has_more_of_its_node_than_it_needs() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let mut paths = BTreeSet::new();
    for (name, args) in cases() {
        let all = objects(&helm, &args.iter().map(String::as_str).collect::<Vec<_>>());
        for (object, pod) in pods(&all) {
            let who = format!("{name}: {}", object["metadata"]["name"]);
            let agent = object["metadata"]["name"] == "loadline-agent";
            for shared in ["hostPID", "hostIPC", "hostNetwork"] {
                assert_eq!(pod.get(shared), None, "{who} {shared}");
            }
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{who}");
            for volume in pod["volumes"].as_array().into_iter().flatten() {
                if let Some(path) = volume["hostPath"]["path"].as_str() {
                    assert!(agent, "{who}: {path}");
                    paths.insert(path.to_owned());
                }
            }
            let containers = pod["containers"].as_array().unwrap();
            assert_eq!((containers.len(), pod.get("initContainers")), (1, None), "{who}");
            let security = &containers[0]["securityContext"];
            assert_eq!(security.get("privileged"), None, "{who}");
            assert_eq!(security["allowPrivilegeEscalation"], false, "{who}");
            assert_eq!(security["capabilities"].get("add"), None, "{who}");
            // The one that is root, and says so.
            let nobody = &pod["securityContext"]["runAsNonRoot"];
            let (root, own) = (&security["runAsUser"], &security["runAsNonRoot"]);
            let expected = if agent { (&json!(0), &json!(false)) } else { (&Value::Null, &Value::Null) };
            assert_eq!((root, own), expected, "{who}");
            assert_eq!(nobody, if agent { &Value::Null } else { &json!(true) }, "{who}");
            for port in containers[0]["ports"].as_array().into_iter().flatten() {
                assert_eq!(port.get("hostPort"), None, "{who}");
            }
        }
    }
    // As the guide and SECURITY.md name them.
    assert_eq!(
        paths.into_iter().collect::<Vec<_>>(),
        ["/proc", "/run/containerd", "/sys", "/var/lib/loadline/agent"]
    );
}

/// What the account of a component may do in the cluster, and where else.
fn roles(all: &[Value], component: &str) -> (bool, Option<String>) {
    let name = format!("loadline-{component}");
    assert!(named(all, "ServiceAccount", &name).is_some(), "{component}");
    let (role, binding) = (named(all, "Role", &name), named(all, "RoleBinding", &name));
    let namespace =
        |object: Option<&Value>| Some(object?["metadata"]["namespace"].as_str().unwrap().to_owned());
    assert_eq!(namespace(role), namespace(binding), "{component}");
    let (anywhere, bound) = (named(all, "ClusterRole", &name), named(all, "ClusterRoleBinding", &name));
    assert_eq!(anywhere.is_some(), bound.is_some(), "{component}");
    (anywhere.is_some(), namespace(role))
}

#[test]
fn an_account_may_write_its_lease_where_that_is_and_nothing_where_a_kubeconfig_is_used() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let home = "loadline-system";
    let publish = "fleet.api=publish,fleet.clusterName=m1,fleet.kubeconfigSecret=hub";
    let grpc = "estimator.enabled=true,estimator.allowPlaintext=true";
    for (values, component, lease, rights, why) in [
        ("fleet.enabled=true", "fleet", Some(home), (true, Some(home)), "this cluster is the hub"),
        (
            "fleet.enabled=true,fleet.lease.namespace=hub",
            "fleet",
            Some("hub"),
            (true, Some("hub")),
            "the lease of what is replaced",
        ),
        (
            "fleet.enabled=true,fleet.api=karmada,fleet.kubeconfigSecret=karmada",
            "fleet",
            Some(home),
            (false, None),
            "everything is done in Karmada's control plane",
        ),
        (
            &*format!("fleet.enabled=true,{publish}"),
            "fleet",
            Some("m1"),
            (true, None),
            "in the hub a member may write in the namespace of its name alone; here it reads",
        ),
        (
            &*format!("fleet.enabled=true,{publish},fleet.lease.namespace=other"),
            "fleet",
            Some("other"),
            (true, None),
            "whoever says so",
        ),
        (
            &*format!("{grpc},estimator.clusterName=m1"),
            "estimator",
            None,
            (true, None),
            "it reads this cluster",
        ),
        (
            &*format!("{grpc},estimator.kubeconfigsSecret=all"),
            "estimator",
            None,
            (false, None),
            "it reads others",
        ),
    ] {
        let all = objects(&helm, &["--set", values]);
        let (anywhere, namespace) = roles(&all, component);
        assert_eq!((anywhere, namespace.as_deref()), rights, "{why}");
        let pods = named(&all, "Deployment", &format!("loadline-{component}")).unwrap();
        let args = pods["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let said =
            args.iter().filter_map(|arg| arg.as_str()?.strip_prefix("--leader-elect-resource-namespace="));
        assert_eq!(said.collect::<Vec<_>>(), Vec::from_iter(lease), "{why}");
    }
}

#[test]
fn pods_run_on_linux_and_jobs_where_they_are_told_and_not_for_ever() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    for (name, args) in cases() {
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(set(&["hooks.nodeSelector.pool=system", "annotator.nodeSelector.disk=fast"]));
        let all = objects(&helm, &args);
        for (object, pod) in pods(&all) {
            let who = object["metadata"]["name"].as_str().unwrap();
            let mut expected = json!({"kubernetes.io/os": "linux"});
            match (object["kind"].as_str().unwrap(), who) {
                ("Job", _) => {
                    expected["pool"] = json!("system");
                    assert!(object["spec"]["activeDeadlineSeconds"].as_i64().unwrap() > 0, "{name}: {who}");
                }
                (_, "loadline-annotator") => expected["disk"] = json!("fast"),
                _ => {}
            }
            assert_eq!(pod["nodeSelector"], expected, "{name}: {who}");
        }
    }
}

#[test]
fn another_policy_starts_nothing_anew() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let run = |policy: &str| {
        let all = objects(&helm, &[set(ALL), vec!["--set", policy]].concat());
        let map = named(&all, "ConfigMap", "loadline-policy").unwrap()["data"].clone();
        let runs = pods(&all).into_iter().map(|(object, _)| object.clone()).collect::<Vec<_>>();
        (map, runs)
    };
    let (one, other) = (run(POLICY), run(&format!("{POLICY}\nspec: {{targets: {{cpu: 0.5}}}}")));
    assert_ne!(one.0, other.0);
    assert_eq!(one.1, other.1, "components read the file again");
}

#[test]
fn two_releases_in_one_cluster_have_nothing_in_common() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let key = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        (object["kind"].to_string(), namespace.to_owned(), object["metadata"]["name"].to_string())
    };
    let own: BTreeSet<_> = objects(&helm, &[]).iter().map(key).collect();
    for file in migrations().iter().filter(|file| !file.ends_with("crane.yaml")) {
        let path = file.display().to_string();
        let others: BTreeSet<_> =
            objects(&helm, &["--values", &path, "-n", "karmada-system"]).iter().map(key).collect();
        let both: Vec<_> = own.intersection(&others).collect();
        assert!(both.is_empty(), "{path}: {both:?}");
    }
}

#[test]
fn who_is_asked_goes_on_answering_until_others_have_heard_that_it_ends() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let all = objects(&helm, &set(CERTIFIED));
    let delays = pods(&all).into_iter().filter_map(|(object, pod)| {
        let args = pod["containers"][0]["args"].as_array()?;
        args.contains(&json!("--shutdown-delay-duration=5s")).then_some(object["metadata"]["name"].as_str()?)
    });
    let delays: BTreeSet<&str> = delays.collect();
    assert_eq!(Vec::from_iter(delays), ["loadline-dashboard", "loadline-estimator", "loadline-scheduler"]);
}

#[test]
fn a_pod_can_be_asked_at_its_ports_and_nowhere_else() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let mut seen = BTreeSet::new();
    for (name, args) in cases() {
        let all = objects(&helm, &args.iter().map(String::as_str).collect::<Vec<_>>());
        for (object, pod) in pods(&all).into_iter().filter(|(object, _)| object["kind"] != "Job") {
            let who = object["metadata"]["name"].as_str().unwrap();
            let labels = &object["spec"]["template"]["metadata"]["labels"];
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            let own = list(&pod["containers"][0]["ports"]);
            let own: BTreeSet<i64> = own.iter().map(|port| port["containerPort"].as_i64().unwrap()).collect();
            let policy = named(&all, "NetworkPolicy", who).unwrap_or_else(|| panic!("{name}: {who}"));
            assert!(chooses(&policy["spec"]["podSelector"]["matchLabels"], labels), "{name}: {who}");
            assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
            let rules = list(&policy["spec"]["ingress"]);
            let ports = rules.iter().flat_map(|rule| list(&rule["ports"]));
            let let_in: BTreeSet<i64> = ports.map(|port| port["port"].as_i64().unwrap()).collect();
            assert_eq!(let_in, own, "{name}: {who}");
            // A rule without ports would let in everything.
            assert_eq!(rules.is_empty(), own.is_empty(), "{name}: {who}");
            // Services lead to ports that are there.
            let services = all.iter().filter(|one| one["kind"] == "Service");
            let services: Vec<_> = services.filter(|one| chooses(&one["spec"]["selector"], labels)).collect();
            assert_eq!(services.len(), usize::from(!own.is_empty()), "{name}: {who}");
            for port in services.iter().flat_map(|one| list(&one["spec"]["ports"])) {
                assert!(own.contains(&port["port"].as_i64().unwrap()), "{name}: {who} {port}");
            }
            seen.insert(who.to_owned());
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
    let off = objects(&helm, &["--set", "networkPolicy.enabled=false"]);
    assert!(off.iter().all(|object| object["kind"] != "NetworkPolicy"));
}

#[test]
fn metrics_are_collected_from_services_that_are_there() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let all = objects(&helm, &set(CERTIFIED));
    let of = |kind: &str| all.iter().filter(|object| object["kind"] == kind).cloned().collect::<Vec<_>>();
    let mut watched = BTreeSet::new();
    for monitor in of("ServiceMonitor") {
        let name = monitor["metadata"]["name"].as_str().unwrap();
        assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus", "{name}");
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let services = of("Service");
        let chosen: Vec<_> =
            services.iter().filter(|one| chooses(selector, &one["metadata"]["labels"])).collect();
        let [service] = chosen[..] else { panic!("{name}: {} services", chosen.len()) };
        let [endpoint] = &monitor["spec"]["endpoints"].as_array().unwrap()[..] else { panic!("{name}") };
        assert_eq!((&endpoint["path"], &endpoint["interval"]), (&json!("/metrics"), &json!("15s")), "{name}");
        let ports = service["spec"]["ports"].as_array().unwrap();
        assert!(ports.iter().any(|port| port["name"] == endpoint["port"]), "{name}");
        watched.insert(name.trim_start_matches("loadline-").to_owned());
    }
    // The page wants a token, also for its metrics.
    let expected = ["agent", "annotator", "estimator", "fleet", "rebalance", "recommender", "scheduler"];
    assert_eq!(watched.into_iter().collect::<Vec<_>>(), expected);
    assert!(objects(&helm, &[]).iter().all(|object| object["kind"] != "ServiceMonitor"));
}

#[test]
fn a_certificate_is_for_the_service_whose_pods_mount_it() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let all = objects(&helm, &set(CERTIFIED));
    let mut made = BTreeMap::new();
    for certificate in all.iter().filter(|object| object["kind"] == "Certificate") {
        let spec = &certificate["spec"];
        assert_eq!(spec["issuerRef"], json!({"kind": "ClusterIssuer", "name": "issuer"}));
        let secret = spec["secretName"].as_str().unwrap();
        let names: Vec<&str> =
            spec["dnsNames"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        let service = named(&all, "Service", names[0]).unwrap_or_else(|| panic!("{names:?}"));
        assert!(names.contains(&format!("{}.loadline-system.svc", names[0]).as_str()), "{names:?}");
        let mounts = |pod: &Value| {
            let volumes = pod["volumes"].as_array().cloned().unwrap_or_default();
            volumes.iter().any(|volume| volume["secret"]["secretName"] == secret)
        };
        let chosen: Vec<bool> = pods(&all)
            .into_iter()
            .filter(|(object, _)| {
                chooses(&service["spec"]["selector"], &object["spec"]["template"]["metadata"]["labels"])
            })
            .map(|(_, pod)| mounts(pod))
            .collect();
        assert_eq!(chosen, [true], "{secret}");
        made.insert(secret.to_owned(), names[0].to_owned());
    }
    let expected = [
        ("dashboard-tls", "loadline-dashboard"),
        ("estimator-tls", "loadline-estimator"),
        ("loadline-extender", "loadline-extender"),
    ];
    assert_eq!(made, expected.map(|(secret, service)| (secret.to_owned(), service.to_owned())).into());
}

#[test]
fn values_for_crane_bring_no_second_annotator_and_the_guide_says_the_same() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let file = chart().join("migrate/crane.yaml");
    let path = file.display().to_string();
    let all = objects(&helm, &["--values", &path]);
    assert!(named(&all, "Deployment", "loadline-scheduler").is_some());
    assert_eq!(named(&all, "Deployment", "loadline-annotator"), None);
    // So that the preflight does not mind the one that runs.
    let job = named(&all, "Job", "loadline-preflight").unwrap();
    let args = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    assert!(args.contains(&json!("--without=annotator")), "{args:?}");
    let text = fs::read_to_string(&file).unwrap();
    let guide = chart().join("../../docs/guide/migrate-from-crane.md");
    let guide = fs::read_to_string(guide).unwrap();
    let said: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start_matches(['#', ' ', '1', '2', '.']).strip_prefix("helm "))
        .collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for command in said {
        assert!(guide.lines().any(|line| line.trim() == format!("helm {command}")), "{command}");
    }
}

#[test]
fn the_preflight_asks_the_prometheus_the_annotator_is_going_to_ask() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let asked = |values: &[&str]| -> Vec<Value> {
        let all = objects(&helm, &set(values));
        let job = named(&all, "Job", "loadline-preflight").unwrap();
        let args = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let is_asked = |arg: &&Value| arg.as_str().unwrap().starts_with("--prometheus");
        args.iter().filter(is_asked).cloned().collect()
    };
    let address = "annotator.prometheus=http://prometheus:9090";
    assert_eq!(asked(&[address]), [json!("--prometheus-address=http://prometheus:9090")]);
    let query = "--prometheus-query=cpu_usage_avg_5m=avg(x)";
    let more = format!("annotator.extraArgs={{--qps=1,{query}}}");
    assert_eq!(
        asked(&[address, &more]),
        [json!("--prometheus-address=http://prometheus:9090"), json!(query)],
        "as the annotator asks it"
    );
    assert_eq!(asked(&[address, "annotator.enabled=false"]), [json!(null); 0], "nobody is going to ask it");
    assert_eq!(asked(&[]), [json!(null); 0]);
}

#[test]
fn the_preflight_may_read_what_it_asks_and_says_what_is_wrong() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let upgrades = objects(&helm, &["--set", "preflight.upgrades=true"]);
    let hook = |all: &[Value], kind: &str| {
        named(all, kind, "loadline-preflight").unwrap()["metadata"]["annotations"]["helm.sh/hook"].clone()
    };
    for kind in ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"] {
        assert_eq!(hook(&upgrades, kind), "pre-install,pre-upgrade", "{kind}");
        assert_eq!(hook(&objects(&helm, &[]), kind), "pre-install", "{kind}");
    }
    assert_eq!(
        named(&objects(&helm, &["--set", "preflight.enabled=false"]), "Job", "loadline-preflight"),
        None
    );
    // With the very account and words of the Job, in a cluster without a metrics API.
    let all = objects(&helm, &["-n", "kube-system"]);
    let args = &named(&all, "Job", "loadline-preflight").unwrap()["spec"]["template"]["spec"]["containers"]
        [0]["args"];
    let args: Vec<&str> = args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let own = all
        .iter()
        .filter(|object| object["metadata"]["name"] == "loadline-preflight" && object["kind"] != "Job");
    let own: Vec<String> = own.map(Value::to_string).collect();
    assert_eq!(own.len(), 3, "an account, a role, and that it has it");
    let kubeconfig = least_privilege(&plane, &own.join("\n---\n"), "loadline-preflight");
    let ask = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let output =
            command.args(&args).args(["--timeout", "1m", "--kubeconfig", &kubeconfig]).args(more).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = ask(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("BROKEN metrics: the cluster has no metrics API")
            && said.contains("install metrics-server"),
        "{said}"
    );
    assert!(!said.contains("reads"), "nothing it asks is denied: {said}");
    let (_, said) = ask(&["-o", "json"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["broken"], 1, "{said}");
}

#[test]
fn an_upgrade_brings_changed_kinds_and_objects_of_them_stay() {
    if parts::find_or_skip("helm").is_none() {
        return;
    }
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let run = |words: &[&str], chart: &Path| {
        let mut helm = install::helm(&plane).unwrap();
        helm.args(words).args(["-n", "loadline-system"]);
        if words[0] != "uninstall" {
            helm.arg(chart);
        }
        let output = helm.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let mut install = vec!["install", "loadline", "--create-namespace"];
    let off: Vec<String> = ["scheduler", "annotator", "recommender", "agent", "preflight", "cleanup"]
        .iter()
        .map(|name| format!("{name}.enabled=false"))
        .collect();
    install.extend(off.iter().flat_map(|value| ["--set", value]));
    run(&install, &chart());
    let rules = "/apis/ensurance.crane.io/v1alpha1/nodeqoss";
    let line = json!({"name": "busy", "actionName": "slow-down", "metricRule": {"name": "cpu_total_usage", "value": 300}});
    let spec = json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [line]});
    let rule = json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": "NodeQOS", "metadata": {"name": "mine"}, "spec": spec});
    until("the kind is served", || plane.get(rules).ok());
    plane.create(rules, &rule).unwrap();

    // The same chart with a field more, as a later version may have.
    let next = tempfile::tempdir().unwrap();
    let copy = |from: PathBuf, to: PathBuf| {
        let done = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
        assert!(done.success());
    };
    copy(chart(), next.path().join("chart"));
    let file = next.path().join("chart/files/crds/nodeqoss.yaml");
    let mut definition: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["later"] = json!({"type": "string"});
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nmetadata:\n"), "the chart marks it as kept there");
    // JSON is YAML; the line the template looks for is kept.
    let json = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {}\nspec: {}\n",
        definition["metadata"]["name"].as_str().unwrap(),
        definition["spec"]
    );
    fs::write(&file, json).unwrap();
    // And with a value more, which a template needs.
    let file = next.path().join("chart/values.yaml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\nlater: {is: true}\n").unwrap();
    let file = next.path().join("chart/values.schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    schema["properties"]["later"] = json!({"type": "object"});
    fs::write(&file, schema.to_string()).unwrap();
    let file = next.path().join("chart/templates/later.yaml");
    fs::write(&file, "{{- if not .Values.later.is }}{{ fail \"not later\" }}{{ end }}\n").unwrap();
    let said = refused(&plane, &["upgrade", "loadline", "--reuse-values"], &next.path().join("chart"));
    assert!(said.contains("nil pointer"), "the values of before lack it: {said}");
    run(&["upgrade", "loadline", "--reset-then-reuse-values"], &next.path().join("chart"));
    let deployments = plane.get("/apis/apps/v1/deployments").unwrap();
    assert_eq!(deployments["items"].as_array().unwrap().len(), 0, "what was said before holds");
    let there = || plane.get(&format!("{KINDS}/nodeqoss.ensurance.crane.io")).unwrap();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later";
    assert!(there().pointer(path).is_some(), "the kind has the new field");
    assert_eq!(plane.get(&format!("{rules}/mine")).unwrap()["metadata"]["name"], "mine");
    until("the new field is taken", || {
        plane.patch(&format!("{rules}/mine"), &json!({"spec": {"later": "x"}})).ok()?;
        (plane.get(&format!("{rules}/mine")).unwrap()["spec"]["later"] == "x").then_some(())
    });

    // Gone, with everything of the user's still there; and it can come again.
    run(&["uninstall", "loadline"], &chart());
    assert_eq!(plane.get(&format!("{rules}/mine")).unwrap()["spec"]["later"], "x");
    run(&install, &chart());
    assert!(there().pointer(path).is_none(), "the kind is the one of this version again");

    // By another name the kinds that stayed are another release's, until somebody says what is meant.
    run(&["uninstall", "loadline"], &chart());
    let off: Vec<&str> = off.iter().flat_map(|value| ["--set", value]).collect();
    let other = [&["install", "other"][..], &off].concat();
    let said = refused(&plane, &other, &chart());
    assert!(said.contains("invalid ownership metadata"), "{said}");
    run(&[&other[..], &["--set", "crds.install=false"]].concat(), &chart());
    run(&["uninstall", "other"], &chart());
    run(&[&other[..], &["--take-ownership"]].concat(), &chart());
    assert_eq!(there()["metadata"]["annotations"]["meta.helm.sh/release-name"], "other");
    assert_eq!(plane.get(&format!("{rules}/mine")).unwrap()["metadata"]["name"], "mine");
}

/// What Helm says that does not do it.
fn refused(plane: &ControlPlane, words: &[&str], chart: &Path) -> String {
    let mut helm = install::helm(plane).unwrap();
    let output = helm.args(words).args(["-n", "loadline-system"]).arg(chart).output().unwrap();
    assert!(!output.status.success(), "{words:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_namespace_that_lets_no_agent_in_is_told_before_anything_is_made() {
    if parts::find_or_skip("helm").is_none() {
        return;
    }
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"metadata": {"name": "loadline-system", "labels": labels}});
    plane.create("/api/v1/namespaces", &namespace).unwrap();
    let off = ["--set", "preflight.enabled=false"];
    let said = refused(&plane, &[&["install", "loadline"][..], &off].concat(), &chart());
    assert!(said.contains("loadline-system enforces the Pod Security level restricted"), "{said}");
    assert!(said.contains("agent.enabled=false"), "{said}");
    assert!(plane.get(KINDS).unwrap()["items"].as_array().unwrap().is_empty());
    // The others are taken, all of them.
    let others =
        template(&parts::find("helm").unwrap(), &set(&["agent.enabled=false", "scheduler.mode=active"]));
    for text in String::from_utf8(others.stdout)
        .unwrap()
        .split("\n---")
        .filter(|text| text.contains("kind: Deployment"))
    {
        let deployment: Value = serde_saphyr::from_str(text).unwrap();
        let mut pod = deployment["spec"]["template"].clone();
        (pod["apiVersion"], pod["kind"]) = (json!("v1"), json!("Pod"));
        pod["metadata"]["name"] = deployment["metadata"]["name"].clone();
        // Made by the controller of accounts and classes, where there is one.
        for made in ["serviceAccountName", "priorityClassName"] {
            pod["spec"].as_object_mut().unwrap().remove(made);
        }
        let pods = "/api/v1/namespaces/loadline-system/pods?dryRun=All";
        let reply = plane.request("POST", pods, Some(&pod)).unwrap();
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }
}
