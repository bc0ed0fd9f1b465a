//! Limit ranges: defaults for containers, and bounds on containers, pods and claims.

use super::{Refused, annotate};
use crate::builtin::json::{child_of, get, list, text};
use crate::builtin::validate::check::amounts;
use loadline_machinery::quantity::Quantity;
use serde_json::{Value, json};

type Amounts = Vec<(String, Quantity)>;

/// Gives containers the requests and limits they lack, and says so in an annotation.
pub(super) fn set_defaults(pod: &mut Value, ranges: &[Value]) {
    for range in ranges {
        let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
        for limit in list(get(range, "spec"), "limits").iter().filter(|l| text(l, "type") == "Container") {
            add(&mut requests, amounts(limit, "defaultRequest"));
            add(&mut limits, amounts(limit, "default"));
        }
        let mut notes = Vec::new();
        for (key, word) in [("containers", "container"), ("initContainers", "init container")] {
            let Some(spec) = pod.get_mut("spec") else { continue };
            for held in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                let name = text(held, "name").to_owned();
                for (field, defaults, what) in
                    [("requests", &requests, "request"), ("limits", &limits, "limit")]
                {
                    let set = fill(held, field, defaults);
                    if !set.is_empty() {
                        notes.push(format!("{} {what} for {word} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let value = format!("LimitRanger plugin set: {}", notes.join("; "));
            annotate(pod, "kubernetes.io/limit-ranger", value);
        }
    }
}

/// Later entries win, as in upstream's map.
fn add(to: &mut Amounts, from: Vec<(&str, Quantity)>) {
    for (name, amount) in from {
        to.retain(|(n, _)| n != name);
        to.push((name.to_owned(), amount));
    }
}

fn fill(container: &mut Value, field: &str, defaults: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    let Some(resources) = child_of(container, "resources") else { return set };
    let held = resources.entry(field).or_insert_with(|| json!({}));
    for (name, amount) in defaults {
        if let Some(map) = held.as_object_mut().filter(|m| !m.contains_key(name)) {
            map.insert(name.clone(), json!(amount.to_string()));
            set.push(name.clone());
        }
    }
    set.sort();
    set
}

/// Holds a new pod against the bounds.
pub(super) fn pod(obj: &Value, ranges: &[Value]) -> Result<(), Refused> {
    let spec = get(obj, "spec");
    for range in ranges {
        let mut problems = Vec::new();
        for limit in list(get(range, "spec"), "limits") {
            match text(limit, "type") {
                "Container" => {
                    for held in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
                        let resources = get(held, "resources");
                        let (requests, limits) = (owned(resources, "requests"), owned(resources, "limits"));
                        bounds(limit, "Container", &requests, &limits, &mut problems);
                    }
                }
                "Pod" => {
                    let (requests, limits) = (total(spec, "requests"), total(spec, "limits"));
                    bounds(limit, "Pod", &requests, &limits, &mut problems);
                }
                _ => {}
            }
        }
        refuse(&problems)?;
    }
    Ok(())
}

/// Holds a claim against the bounds.
pub(super) fn claim(obj: &Value, ranges: &[Value]) -> Result<(), Refused> {
    let requests = owned(get(get(obj, "spec"), "resources"), "requests");
    for range in ranges {
        let mut problems = Vec::new();
        let limits = list(get(range, "spec"), "limits").iter();
        for limit in limits.filter(|l| text(l, "type") == "PersistentVolumeClaim") {
            for (name, bound) in amounts(limit, "min") {
                problems.extend(least(name, "PersistentVolumeClaim", bound, &requests, &Amounts::new()));
            }
            for (name, bound) in amounts(limit, "max") {
                let head = format!("maximum {name} usage per PersistentVolumeClaim is {bound}");
                match find(&requests, name) {
                    None => problems.push(format!("{head}.  No request is specified")),
                    Some(asked) if asked > bound => problems.push(format!("{head}, but request is {asked}")),
                    Some(_) => {}
                }
            }
        }
        refuse(&problems)?;
    }
    Ok(())
}

fn refuse(problems: &[String]) -> Result<(), Refused> {
    match problems {
        [] => Ok(()),
        [one] => Err(Refused(one.clone())),
        many => Err(Refused(format!("[{}]", many.join(", ")))),
    }
}

fn owned(resources: &Value, key: &str) -> Amounts {
    amounts(resources, key).into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn find(list: &Amounts, name: &str) -> Option<Quantity> {
    list.iter().find(|(n, _)| n == name).map(|(_, amount)| *amount)
}

/// What the pod as a whole asks for: containers and sidecars together, or the largest step before them.
fn total(spec: &Value, key: &str) -> Amounts {
    let mut running = Amounts::new();
    let plus = |to: &mut Amounts, from: &Amounts| {
        for (name, amount) in from {
            match to.iter_mut().find(|(n, _)| n == name) {
                Some((_, sum)) => *sum = sum.plus(*amount),
                None => to.push((name.clone(), *amount)),
            }
        }
    };
    let most = |to: &mut Amounts, from: &Amounts| {
        for (name, amount) in from {
            match to.iter_mut().find(|(n, _)| n == name) {
                Some((_, held)) => *held = (*held).max(*amount),
                None => to.push((name.clone(), *amount)),
            }
        }
    };
    for held in list(spec, "containers") {
        plus(&mut running, &owned(get(held, "resources"), key));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for held in list(spec, "initContainers") {
        let mut asked = owned(get(held, "resources"), key);
        if text(held, "restartPolicy") == "Always" {
            plus(&mut running, &asked);
            plus(&mut sidecars, &asked);
            asked.clone_from(&sidecars);
        } else {
            plus(&mut asked, &sidecars);
        }
        most(&mut start, &asked);
    }
    most(&mut running, &start);
    for (name, amount) in owned(get(spec, "resources"), key) {
        if matches!(name.as_str(), "cpu" | "memory") {
            running.retain(|(n, _)| *n != name);
            running.push((name, amount));
        }
    }
    running
}

fn bounds(limit: &Value, ty: &str, requests: &Amounts, limits: &Amounts, out: &mut Vec<String>) {
    for (name, bound) in amounts(limit, "min") {
        out.extend(least(name, ty, bound, requests, limits));
    }
    for (name, bound) in amounts(limit, "max") {
        let head = format!("maximum {name} usage per {ty} is {bound}");
        match (find(limits, name), find(requests, name)) {
            (None, _) => out.push(format!("{head}.  No limit is specified")),
            (Some(most), _) if most > bound => out.push(format!("{head}, but limit is {most}")),
            (_, Some(asked)) if asked > bound => out.push(format!("{head}, but request is {asked}")),
            _ => {}
        }
    }
    for (name, bound) in amounts(limit, "maxLimitRequestRatio") {
        let head = format!("{name} max limit to request ratio per {ty} is {bound}");
        let (asked, most) = (find(requests, name), find(limits, name));
        match (asked.filter(|q| !q.is_zero()), most.filter(|q| !q.is_zero())) {
            (None, _) => out.push(format!("{head}, but no request is specified or request is 0")),
            (_, None) => out.push(format!("{head}, but no limit is specified or limit is 0")),
            (Some(asked), Some(most)) => {
                let ratio = ratio(most, asked);
                if ratio * 1000.0 > as_float(bound.milli_value()) {
                    out.push(format!("{head}, but provided ratio is {ratio:.6}"));
                }
            }
        }
    }
}

/// How many times the request the limit is: in thousandths, unless they are too many.
fn ratio(limit: Quantity, request: Quantity) -> f64 {
    let fine = [limit, request].iter().all(|amount| amount.value() <= i64::MAX / 1000);
    let size = |amount: Quantity| as_float(if fine { amount.milli_value() } else { amount.value() });
    size(limit) / size(request)
}

#[expect(clippy::cast_precision_loss, reason = "ratios are shown to people and compared roughly")]
fn as_float(size: i64) -> f64 {
    size as f64
}

fn least(name: &str, ty: &str, bound: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let head = format!("minimum {name} usage per {ty} is {bound}");
    match (find(requests, name), find(limits, name)) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(asked), _) if asked < bound => Some(format!("{head}, but request is {asked}")),
        (_, Some(most)) if most < bound => Some(format!("{head}, but limit is {most}")),
        _ => None,
    }
}
