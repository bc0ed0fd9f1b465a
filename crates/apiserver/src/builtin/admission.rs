//! The default admission plugins that change or refuse objects: what they do to pods, claims and volumes.
//!
//! Mutating plugins run before an object is prepared and validated ([`create`], [`update`]); the others have their
//! say after that ([`check`]).

mod limits;

use super::GroupVersionKind;
use super::json::{child, child_of, copy, flag, get, has, int, list, set_default, text};
use serde_json::{Value, json};

/// Why admission refused an object. The handler answers 403 with this sentence, see `Status::forbidden`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub String);

/// What the plugins `Priority` and `RuntimeClass` need to look up.
pub(crate) trait PriorityClasses {
    /// The class of this name.
    fn get(&self, name: &str) -> Option<Value>;
    /// The class with `globalDefault: true`, if any; of several the one with the lowest value.
    fn global_default(&self) -> Option<Value>;
    /// The runtime class of this name.
    fn runtime_class(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// Runs the mutating plugins for a create: `LimitRanger`, `Priority`, `DefaultTolerationSeconds` and
/// `StorageObjectInUseProtection`. `limit_ranges` are those of the object's namespace.
///
/// # Errors
/// When there is no such priority class, or a pod brings a priority that its class does not have.
pub(crate) fn create(
    kind: GroupVersionKind<'_>,
    obj: &mut Value,
    classes: &dyn PriorityClasses,
    limit_ranges: &[Value],
) -> Result<(), Refused> {
    match (kind.group, kind.kind) {
        ("", "Pod") => {
            limits::set_defaults(obj, limit_ranges);
            priority(obj, classes)?;
            tolerations(obj);
            runtime(obj, classes)?;
        }
        ("", "PersistentVolume") => finalizer(obj, "kubernetes.io/pv-protection"),
        ("", "PersistentVolumeClaim") => finalizer(obj, "kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "VolumeAttributesClass") => finalizer(obj, "kubernetes.io/vac-protection"),
        _ => {}
    }
    Ok(())
}

/// Runs the mutating plugins for an update of the main resource.
pub(crate) fn update(kind: GroupVersionKind<'_>, new: &mut Value, old: &Value) {
    if (kind.group, kind.kind) != ("", "Pod") {
        return;
    }
    if let Some(spec) = new.get_mut("spec") {
        for key in ["priority", "preemptionPolicy"] {
            if !has(spec, key) {
                copy(spec, get(old, "spec"), key);
            }
        }
    }
    tolerations(new);
}

/// Runs the plugins that only refuse, after validation. `old` is the stored object of an update.
///
/// # Errors
/// When a limit range is violated, or a second priority class wants to be the default.
pub(crate) fn check(
    kind: GroupVersionKind<'_>,
    obj: &Value,
    old: Option<&Value>,
    classes: &dyn PriorityClasses,
    limit_ranges: &[Value],
) -> Result<(), Refused> {
    match (kind.group, kind.kind) {
        ("", "Pod") if old.is_none() => {
            let spec = get(obj, "spec");
            let class = classes.runtime_class(text(spec, "runtimeClassName"));
            let overhead = class.is_some_and(|class| has(get(&class, "overhead"), "podFixed"));
            if has(spec, "overhead") && !overhead {
                let why = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
                return Err(Refused(format!("pod rejected: {why}")));
            }
            limits::pod(obj, limit_ranges)
        }
        ("", "PersistentVolumeClaim")
            if !has(get(old.unwrap_or(&Value::Null), "metadata"), "deletionTimestamp") =>
        {
            limits::claim(obj, limit_ranges)
        }
        ("scheduling.k8s.io", "PriorityClass") if flag(obj, "globalDefault") => {
            let Some(other) = classes.global_default() else { return Ok(()) };
            let name = text(get(&other, "metadata"), "name");
            if old.is_some() && name == text(get(obj, "metadata"), "name") {
                return Ok(());
            }
            Err(Refused(format!(
                "PriorityClass {name} is already marked as default. Only one default can exist"
            )))
        }
        _ => Ok(()),
    }
}

/// Resolves the priority class of a new pod.
fn priority(obj: &mut Value, classes: &dyn PriorityClasses) -> Result<(), Refused> {
    let spec = get(obj, "spec");
    let name = text(spec, "priorityClassName");
    let class = if name.is_empty() {
        classes.global_default()
    } else {
        let found = classes.get(name);
        if found.is_none() {
            return Err(Refused(format!("no PriorityClass with name {name} was found")));
        }
        found
    };
    let value = class.as_ref().and_then(|c| int(c, "value")).unwrap_or(0);
    let policy = class.as_ref().map_or("", |c| text(c, "preemptionPolicy"));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    let rule = "from the given PriorityClass name";
    if let Some(given) = int(spec, "priority").filter(|given| *given != value) {
        return Err(Refused(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {value} {rule}"
        )));
    }
    let given = text(spec, "preemptionPolicy");
    if !given.is_empty() && given != policy {
        return Err(Refused(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
             admission controller computed {policy} {rule}"
        )));
    }
    let name = class.as_ref().map(|c| get(get(c, "metadata"), "name").clone());
    if let Some(spec) = child_of(obj, "spec") {
        if let Some(name) = name {
            spec.insert("priorityClassName".to_owned(), name);
        }
        spec.insert("priority".to_owned(), json!(value));
        spec.insert("preemptionPolicy".to_owned(), json!(policy));
    }
    Ok(())
}

/// A runtime class decides the overhead of its pods.
fn runtime(obj: &mut Value, classes: &dyn PriorityClasses) -> Result<(), Refused> {
    let spec = get(obj, "spec");
    let name = text(spec, "runtimeClassName");
    let overhead = if name.is_empty() {
        Value::Null
    } else {
        let class = classes.runtime_class(name);
        let class = class.ok_or_else(|| Refused(format!("pod rejected: RuntimeClass {name:?} not found")))?;
        get(get(&class, "overhead"), "podFixed").clone()
    };
    if has(spec, "overhead") && !overhead.is_null() && get(spec, "overhead") != &overhead {
        let why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        return Err(Refused(format!("pod rejected: {why}")));
    }
    if !overhead.is_null()
        && let Some(spec) = child_of(obj, "spec")
    {
        spec.insert("overhead".to_owned(), overhead);
    }
    Ok(())
}

/// Pods stay five minutes on nodes that are not ready or not reachable, unless they say otherwise.
fn tolerations(obj: &mut Value) {
    let mut all = list(get(obj, "spec"), "tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covered = all.iter().any(|t| {
            matches!(text(t, "key"), "") && matches!(text(t, "effect"), "" | "NoExecute")
                || text(t, "key") == key && matches!(text(t, "effect"), "" | "NoExecute")
        });
        if !covered {
            all.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    if let Some(spec) = child_of(obj, "spec").filter(|_| !all.is_empty()) {
        spec.insert("tolerations".to_owned(), Value::Array(all));
    }
}

/// Volumes in use are not deleted at once.
fn finalizer(obj: &mut Value, name: &str) {
    let Some(meta) = child_of(obj, "metadata") else { return };
    set_default(meta, "finalizers", json!([]));
    if let Some(all) = meta.get_mut("finalizers").and_then(Value::as_array_mut)
        && !all.contains(&json!(name))
    {
        all.push(json!(name));
    }
}

/// Sets an annotation.
fn annotate(obj: &mut Value, key: &str, value: String) {
    if let Some(annotations) = child_of(obj, "metadata").and_then(|m| child(m, "annotations")) {
        annotations.insert(key.to_owned(), Value::String(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Classes(Vec<Value>);

    impl PriorityClasses for Classes {
        fn get(&self, name: &str) -> Option<Value> {
            self.0.iter().find(|c| text(super::get(c, "metadata"), "name") == name).cloned()
        }
        fn global_default(&self) -> Option<Value> {
            self.0.iter().find(|c| flag(c, "globalDefault")).cloned()
        }
    }

    const POD: GroupVersionKind<'_> = GroupVersionKind { group: "", version: "v1", kind: "Pod" };

    fn classes() -> Classes {
        Classes(vec![json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})])
    }

    #[test]
    fn priority_comes_from_the_class_and_not_from_the_client() {
        let mut pod = json!({"spec": {"priorityClassName": "high"}});
        create(POD, &mut pod, &classes(), &[]).unwrap();
        assert_eq!(
            (&pod["spec"]["priority"], &pod["spec"]["preemptionPolicy"]),
            (&json!(1000), &json!("Never"))
        );
        let mut pod = json!({"spec": {}});
        create(POD, &mut pod, &classes(), &[]).unwrap();
        assert_eq!(pod["spec"]["priority"], json!(0));
        assert_eq!(pod["spec"]["preemptionPolicy"], json!("PreemptLowerPriority"));
        let mut pod = json!({"spec": {"priorityClassName": "none"}});
        let refused = create(POD, &mut pod, &classes(), &[]).unwrap_err();
        assert_eq!(refused.0, "no PriorityClass with name none was found");
        let mut pod = json!({"spec": {"priority": 7}});
        assert!(create(POD, &mut pod, &classes(), &[]).is_err());
    }

    #[test]
    fn pods_tolerate_bad_nodes_for_five_minutes_unless_they_say_otherwise() {
        let mut pod = json!({"spec": {}});
        create(POD, &mut pod, &classes(), &[]).unwrap();
        assert_eq!(list(&pod["spec"], "tolerations").len(), 2);
        let once = pod.clone();
        update(POD, &mut pod, &once);
        assert_eq!(pod, once, "a second time changes nothing");
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        create(POD, &mut pod, &classes(), &[]).unwrap();
        assert_eq!(list(&pod["spec"], "tolerations").len(), 1);
    }

    #[test]
    fn limit_ranges_fill_requests_and_refuse_what_is_too_large() {
        let range = json!({"spec": {"limits": [{
            "type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"},
            "defaultRequest": {"cpu": "250m"},
        }]}});
        let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "a"}]}});
        create(POD, &mut pod, &classes(), std::slice::from_ref(&range)).unwrap();
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], json!("250m"));
        assert_eq!(
            pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
            json!("LimitRanger plugin set: cpu request for container a; cpu limit for container a")
        );
        check(POD, &pod, None, &classes(), std::slice::from_ref(&range)).unwrap();
        pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("2");
        let refused = check(POD, &pod, None, &classes(), &[range]).unwrap_err();
        assert_eq!(refused.0, "maximum cpu usage per Container is 1, but limit is 2");
    }
}
