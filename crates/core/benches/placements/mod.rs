//! Fleets and placements to decide.
//!
//! A tenth as many placements as clusters is usual, every one of which may select any cluster. Clusters have twelve labels,
//! one in twenty is tainted; placements are a mix of what people write: labels, resources, scores of others,
//! tolerations, counts from 1 to 50, and all.

use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::place::{
    Action, ClusterFacts, Configuration, Coordinate, Effect, Fleet, Members, NoCel, Options, Placement,
    Predicate, Resources, Scores, Taint, Toleration,
};
use loadline_core::select::LabelSelector;

/// When all of it takes place.
pub fn noon() -> Timestamp {
    "2025-01-01T12:00:00Z".parse().expect("a time")
}

/// A number that looks like chance, the same every time.
fn mixed(n: usize, salt: usize) -> usize {
    let mut x = n.wrapping_mul(0x9e37_79b9).wrapping_add(salt.wrapping_mul(0x85eb_ca6b));
    x ^= x >> 15;
    x = x.wrapping_mul(0x2c1b_3c6d);
    x ^ (x >> 12)
}

/// So many cores, so much memory in Gi.
pub fn amounts(cpu: usize, memory: usize) -> Resources {
    let amount = |text: String| text.parse().expect("an amount");
    [("cpu".to_owned(), amount(cpu.to_string())), ("memory".to_owned(), amount(format!("{memory}Gi")))].into()
}

/// One of them.
pub fn cluster(n: usize) -> ClusterFacts {
    let mut labels: Vec<(String, String)> = vec![
        ("region".into(), format!("r{}", mixed(n, 1) % 8)),
        ("tier".into(), ["gold", "silver", "tin"][mixed(n, 2) % 3].into()),
        ("name".into(), format!("c{n}")),
    ];
    labels.extend((0..9).map(|key| (format!("key{key}"), format!("v{}", mixed(n, key + 3) % 10))));
    let tainted = mixed(n, 20).is_multiple_of(20);
    let taint = Taint {
        key: "cluster.open-cluster-management.io/unreachable".into(),
        value: String::new(),
        effect: Effect::NoSelect,
        time_added: Some(noon()),
    };
    let capacity = 32 + mixed(n, 21) % 1000;
    ClusterFacts {
        name: format!("cluster-{n:05}").into(),
        labels: labels.into_iter().collect(),
        taints: if tainted { vec![taint] } else { Vec::new() },
        capacity: amounts(capacity, capacity * 4),
        allocatable: amounts(capacity - mixed(n, 22) % 32, capacity * 4 - mixed(n, 23) % 32),
        ..ClusterFacts::default()
    }
}

fn placement(n: usize) -> Placement {
    let built_in =
        |name: &str, weight| Configuration { coordinate: Some(Coordinate::BuiltIn(name.to_owned())), weight };
    let region = |n: usize| Predicate {
        labels: LabelSelector {
            match_labels: [("region".to_owned(), format!("r{}", n % 8))].into(),
            ..LabelSelector::default()
        },
        ..Predicate::default()
    };
    let exists = Toleration { operator: "Exists".into(), seconds: Some(600), ..Toleration::default() };
    Placement {
        key: Key::new(format!("ns{}", n % 50), format!("placement-{n}")),
        // Who wants all clusters does not care which are best.
        count: [None, Some(1), Some(3), Some(10), Some(50)][n % 5],
        predicates: match n % 4 {
            0 => vec![],
            1 => vec![region(n)],
            2 => vec![region(n), region(n + 1)],
            _ => vec![region(n), region(n + 3), region(n + 5)],
        },
        tolerations: if n.is_multiple_of(3) { vec![exists] } else { vec![] },
        configurations: match n % 5 {
            0 => vec![],
            1 => vec![built_in("ResourceAllocatableCPU", 2)],
            2 => vec![built_in("ResourceAllocatableMemory", 1), built_in("Steady", 3)],
            3 => vec![built_in("ResourceRatioMemory", 1)],
            _ => vec![Configuration {
                coordinate: Some(Coordinate::AddOn(Some(("demo".into(), "x".into())))),
                weight: 1,
            }],
        },
        ..Placement::default()
    }
}

/// So many of both, nothing decided.
pub fn fleet(clusters: usize, placements: usize) -> Fleet {
    let mut fleet = Fleet::new(Options::default());
    fleet.set_set("global", Members::Labels(Some(LabelSelector::default())));
    (0..50).for_each(|n| fleet.bind(&format!("ns{n}"), "global"));
    for n in 0..clusters {
        fleet.set_cluster(cluster(n));
        let value = i32::try_from(mixed(n, 9) % 201).expect("small") - 100;
        let scores = Scores { values: [("x".to_owned(), value)].into(), valid_until: None };
        fleet.set_scores(&format!("cluster-{n:05}"), "demo", scores);
    }
    (0..placements).for_each(|n| fleet.set_placement(placement(n)));
    fleet
}

/// Decides everything there is a reason for, and publishes it.
pub fn settle(fleet: &mut Fleet) {
    for outcome in fleet.decide(&NoCel, noon()) {
        for write in outcome.writes.iter().filter(|write| write.action != Action::None) {
            fleet.set_slice(write.slice.clone());
        }
    }
}
