//! The steps of the tour, in order.

use crate::mask::View::{self, Describe, Fields, Last, Lines, Table};

/// One call of kubectl.
pub struct Step {
    pub name: &'static str,
    pub args: &'static str,
    pub input: &'static str,
    pub view: View,
}

const fn step(name: &'static str, args: &'static str, view: View) -> Step {
    Step { name, args, input: "", view }
}

const fn with(name: &'static str, args: &'static str, input: &'static str, view: View) -> Step {
    Step { name, args, input, view }
}

const WEB: &str = include_str!("web.yaml");
const WEB_CHANGED: &str = include_str!("web-changed.yaml");
const BUDGET: &str = include_str!("budget.yaml");
const LINGER: &str = include_str!("linger.yaml");
/// No controller writes to a network policy, so that what was read is what is patched.
const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\n\
    spec: {podSelector: {matchLabels: {app: web}}}\n";
const INVALID: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad}\nspec: {replicas: -1}\n";
const LIST: &str = "apiVersion: v1\nkind: List\nitems:\n\
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}\n\
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: b}}\n";
const LIST_TYPO: &str = "apiVersion: v1\nkind: List\nitems:\n\
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, datta: {a: b}}\n";
const TYPO: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndatta: {a: b}\n";

pub const STEPS: &[Step] = &[
    step("get nodes", "get nodes", Table),
    step("get nodes wide", "get nodes -o wide", Table),
    with("apply", "apply -f -", WEB, Lines),
    step("rollout status", "rollout status deployment/web --timeout=120s", Last),
    step("wait for available", "wait --for=condition=Available deployment/web --timeout=120s", Lines),
    step("wait for pods", "wait --for=condition=Ready pods -l app=web --timeout=120s", Lines),
    with("apply budget", "apply -f -", BUDGET, Lines),
    with("apply again", "apply -f -", WEB, Lines),
    step("get workloads", "get deployments,replicasets", Table),
    step("get workloads wide", "get deployments,replicasets -o wide", Table),
    step(
        "wait for budget",
        "wait --for=jsonpath={.status.disruptionsAllowed}=1 pdb/web --timeout=120s",
        Lines,
    ),
    step("get budget", "get poddisruptionbudgets", Table),
    step("get pods", "get pods", Table),
    step("get pods wide", "get pods -o wide", Table),
    step("get pods with labels", "get pods -l app=web --show-labels", Table),
    step("get pods by name", "get pods -o name", Lines),
    step("get columns", "get pods -o custom-columns=PHASE:.status.phase,QOS:.status.qosClass", Table),
    step("describe deployment", "describe deployment web", Describe),
    step("describe replica set", "describe replicasets -l app=web", Describe),
    step("describe pods", "describe pods -l app=web", Describe),
    step("describe budget", "describe poddisruptionbudget web", Describe),
    step("describe node", "describe node node-05", Describe),
    with("diff without change", "diff -f -", WEB, Lines),
    with("diff with change", "diff -f -", WEB_CHANGED, Lines),
    with("apply change", "apply -f -", WEB_CHANGED, Lines),
    step("rollout after apply", "rollout status deployment/web --timeout=120s", Last),
    step("patch strategic", r#"patch deployment web -p {"metadata":{"labels":{"tier":"front"}}}"#, Lines),
    step(
        "patch merge",
        r#"patch deployment web --type=merge -p {"metadata":{"labels":{"tier":null}}}"#,
        Lines,
    ),
    step(
        "patch json",
        r#"patch deployment web --type=json -p [{"op":"replace","path":"/spec/replicas","value":5}]"#,
        Lines,
    ),
    with("apply policy", "apply -f -", POLICY, Lines),
    step(
        "patch without change",
        r#"patch networkpolicy web --type=merge -p {"spec":{"policyTypes":["Ingress"]}}"#,
        Lines,
    ),
    step("get generation", "get networkpolicy web -o jsonpath={.metadata.generation}", Lines),
    step(
        "patch to the default",
        r#"patch networkpolicy web --type=merge -p {"spec":{"policyTypes":null}}"#,
        Lines,
    ),
    step(
        "patch with change",
        r#"patch networkpolicy web --type=merge -p {"spec":{"podSelector":{"matchLabels":null}}}"#,
        Lines,
    ),
    step("delete policy", "delete networkpolicy web", Lines),
    step(
        "patch json that fails",
        r#"patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":9}]"#,
        Lines,
    ),
    step("rollout after patch", "rollout status deployment/web --timeout=120s", Last),
    step("scale", "scale deployment web --replicas=6", Lines),
    step("rollout after scale", "rollout status deployment/web --timeout=120s", Last),
    step("scale with a wrong guess", "scale deployment web --current-replicas=2 --replicas=6", Lines),
    step("set image", "set image deployment/web web=nginx:3", Lines),
    step("rollout after image", "rollout status deployment/web --timeout=120s", Last),
    step("annotate cause", "annotate deployment web kubernetes.io/change-cause=newer", Lines),
    step("history", "rollout history deployment/web", Table),
    step("history of one", "rollout history deployment/web --revision=2", Describe),
    step("undo", "rollout undo deployment/web", Lines),
    step("rollout after undo", "rollout status deployment/web --timeout=120s", Last),
    step("restart", "rollout restart deployment/web", Lines),
    step("rollout after restart", "rollout status deployment/web --timeout=120s", Last),
    step("pause", "rollout pause deployment/web", Lines),
    step("set image while paused", "set image deployment/web web=nginx:4", Lines),
    step("resume", "rollout resume deployment/web", Lines),
    step("rollout after resume", "rollout status deployment/web --timeout=120s", Last),
    step("revisions", "rollout history deployment/web", Table),
    step("label", "label node node-05 disk=fast", Lines),
    step("label again", "label node node-05 disk=slow", Lines),
    step("label over", "label node node-05 disk=slow --overwrite", Lines),
    step("label away", "label node node-05 disk-", Lines),
    step("label pods", "label pods -l app=web seen=yes", Lines),
    step("annotate", "annotate node node-05 note=checked", Lines),
    step("taint", "taint node node-05 only=web:NoSchedule", Lines),
    step("taint again", "taint node node-05 only=web:NoSchedule", Lines),
    step("get taints", "get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key", Table),
    step("taint away", "taint node node-05 only-", Lines),
    step("taint away again", "taint node node-05 only-", Lines),
    step("cordon", "cordon node-04", Lines),
    step("cordon again", "cordon node-04", Lines),
    step("get cordoned", "get nodes", Table),
    step("uncordon", "uncordon node-04", Lines),
    step("drain", "drain node-00 --ignore-daemonsets --timeout=120s", Lines),
    step("drain a second", "drain node-01 --ignore-daemonsets --timeout=120s", Lines),
    step("get drained", "get nodes", Table),
    step("pods on a drained node", "get pods --field-selector spec.nodeName=node-00", Table),
    step("rollout after drain", "rollout status deployment/web --timeout=120s", Last),
    step("pods after drain", "get pods", Table),
    step("uncordon drained", "uncordon node-00 node-01", Lines),
    with("run a pod", "apply -f -", LINGER, Lines),
    step("wait for the pod", "wait --for=condition=Ready pod/linger --timeout=120s", Lines),
    step("describe the pod", "describe pod linger", Describe),
    step("drain a pod of nobody", "drain node-03 --ignore-daemonsets --timeout=120s", Lines),
    step("uncordon again", "uncordon node-03", Lines),
    step("delete the pod", "delete pod linger", Lines),
    step("wait for its end", "wait --for=delete pod/linger --timeout=120s", Lines),
    step("explain", "explain deployment.spec.strategy", Fields),
    step("explain all", "explain pods.spec --recursive", Fields),
    step("explain nonsense", "explain pods.spec.nothing", Lines),
    step(
        "get json path",
        "get deployment web -o jsonpath={.spec.replicas}/{.status.availableReplicas}",
        Lines,
    ),
    step("get missing", "get deployment missing", Lines),
    step("get unknown kind", "get whatevers", Lines),
    step("delete missing", "delete deployment missing", Lines),
    step("delete missing quietly", "delete deployment missing --ignore-not-found", Lines),
    step("scale missing", "scale deployment missing --replicas=1", Lines),
    with("apply invalid", "apply -f -", INVALID, Lines),
    with("apply a typo", "apply -f -", TYPO, Lines),
    with("apply a list", "apply -f -", LIST, Lines),
    with("apply a list again", "apply -f -", LIST, Lines),
    with("apply a list with a typo", "apply -f -", LIST_TYPO, Lines),
    step("create", "create configmap three --from-literal=a=b", Lines),
    step("create again", "create configmap three --from-literal=a=b", Lines),
    step("create from words", "create deployment words --image=nginx --replicas=2", Lines),
    step("delete several", "delete configmap/one configmap/two configmap/three deployment/words", Lines),
    with("apply on the server", "apply --server-side -f -", WEB_CHANGED, Lines),
    with("apply dry", "apply --dry-run=server -f -", WEB, Lines),
    step("top nodes", "top nodes", Table),
    step("top pods", "top pods", Table),
    step("delete", "delete deployment web", Lines),
    step("delete budget", "delete poddisruptionbudget web", Lines),
    step("wait for the end", "wait --for=delete pods -l app=web --timeout=120s", Last),
    step("get nothing", "get pods,replicasets,deployments", Lines),
];
