//! Plans on small random worlds against the slow obvious way: build the world anew without the pods that are
//! gone, and ask every rule.

use super::*;
use proptest::prelude::*;

const CORE: i64 = 1_000_000_000;

#[derive(Clone, Debug)]
struct Node {
    cpu: u32,
    zone: Option<u8>,
    cordoned: bool,
    attach: Option<i64>,
    head: Option<i64>,
}

#[derive(Clone, Debug)]
struct Pod {
    node: usize,
    cpu: u32,
    priority: i32,
    started: Option<i64>,
    app: u8,
    port: Option<i32>,
    away: Option<(u8, bool)>,
    near: Option<(u8, bool)>,
    spread: Vec<(i64, u8, bool, Option<i64>)>,
    volume: Option<(u8, bool)>,
    terminating: bool,
    promised: bool,
}

#[derive(Clone, Debug)]
struct Scene {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    new: Pod,
    budgets: Vec<(u8, i64)>,
    load: bool,
}

fn key(zone: bool) -> &'static str {
    if zone { "zone" } else { "host" }
}

fn a_node() -> impl Strategy<Value = Node> {
    let head = prop_oneof![2 => Just(None), 1 => (-1i64..4).prop_map(Some)];
    (
        1u32..5,
        prop::option::weighted(0.8, 0u8..2),
        prop::bool::weighted(0.05),
        prop::option::weighted(0.3, 0i64..3),
        head,
    )
        .prop_map(|(cpu, zone, cordoned, attach, head)| Node { cpu, zone, cordoned, attach, head })
}

/// A pod that wants something of its node beside CPU so often, of each kind.
fn a_pod(priorities: std::ops::Range<i32>, often: f64) -> impl Strategy<Value = Pod> {
    let spread = (1i64..3, 0u8..3, any::<bool>(), prop::option::weighted(0.3, 1i64..4));
    (
        (0usize..4, 0u32..4, priorities, prop::option::of(0i64..3), 0u8..3),
        (
            prop::option::weighted(often, 80i32..82),
            prop::option::weighted(often, (0u8..3, any::<bool>())),
            prop::option::weighted(0.15, (0u8..3, any::<bool>())),
            prop::collection::vec(spread, 0..3),
            prop::option::weighted(often, (0u8..3, any::<bool>())),
        ),
        (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
    )
        .prop_map(|((node, cpu, priority, started, app), rest, (terminating, promised))| {
            let (port, away, near, spread, volume) = rest;
            Pod { node, cpu, priority, started, app, port, away, near, spread, volume, terminating, promised }
        })
}

fn scenes() -> impl Strategy<Value = Scene> {
    (
        prop::collection::vec(a_node(), 1..=4),
        prop::collection::vec(a_pod(0..4, 0.4), 3..=6),
        a_pod(2..6, 0.4),
        prop::collection::vec((0u8..3, 0i64..2), 0..3),
        any::<bool>(),
    )
        .prop_map(|(nodes, pods, new, budgets, load)| Scene { nodes, pods, new, budgets, load })
}

impl Pod {
    fn facts(&self, name: &str, on: Option<String>) -> PodFacts {
        let built = pod(name).cpu(&self.cpu.to_string()).priority(self.priority);
        let built = built.label("app", &self.app.to_string());
        let mut facts = facts(built, |w| {
            let speaks = |(app, zone): (u8, bool)| term(&format!("app={app}"), key(zone));
            w.anti_affinity.required.extend(self.away.map(speaks));
            w.affinity.required.extend(self.near.map(speaks));
            w.ports.extend(self.port.map(|port| HostPort {
                ip: String::new(),
                protocol: "TCP".to_owned(),
                port,
            }));
            w.volumes.extend(self.volume.filter(|(_, exclusive)| !exclusive).map(|(id, _)| Volume {
                id: format!("v{id}").into(),
                driver: Some("disk".into()),
                ..Volume::default()
            }));
            w.exclusive.extend(
                self.volume.filter(|(_, exclusive)| *exclusive).map(|(id, _)| format!("v{id}").into()),
            );
            w.spread.extend(self.spread.iter().map(|(max_skew, app, zone, min_domains)| Spread {
                max_skew: *max_skew,
                topology_key: key(*zone).into(),
                hard: true,
                selector: selector(&format!("app={app}")),
                min_domains: *min_domains,
                honor_affinity: true,
                honor_taints: false,
            }));
        });
        facts.accepted = self.started.map(at);
        facts.terminating = self.terminating;
        if self.promised {
            facts.nominated = on;
        } else {
            facts.node = on;
        }
        facts
    }
}

/// A world, and what the load rules say of it.
struct Built {
    cluster: Snapshot,
    board: Board,
    new: Arc<PodView>,
}

/// What a node is compared by, from the victims and how many of them overdraw a budget; less is better.
type Question<'a> = &'a dyn Fn(&[usize], usize) -> i64;

impl Scene {
    fn node_of(&self, pod: &Pod) -> usize {
        pod.node % self.nodes.len()
    }

    /// Without some pods, nodes and pods coming in the given orders.
    fn build(&self, gone: &[usize], nodes: &[usize], pods: &[usize]) -> Built {
        let mut world = world();
        for i in nodes {
            let n = &self.nodes[*i];
            let name = format!("n{i}");
            let mut built = node(&name).cpu(&n.cpu.to_string()).label("host", &name);
            if let Some(zone) = n.zone {
                built = built.label("zone", &zone.to_string());
            }
            let mut facts = built.facts();
            facts.unschedulable = n.cordoned;
            facts.attach_limits.extend(n.attach.map(|limit| ("disk".to_owned(), limit)));
            world.0.set_node(&facts);
        }
        for i in pods.iter().filter(|i| !gone.contains(i)) {
            let on = format!("n{}", self.node_of(&self.pods[*i]));
            world = add(world, &self.pods[*i].facts(&format!("p{i}"), Some(on)));
        }
        let mut live = world.0;
        let new = self.new.facts("new", None);
        let new = Arc::new(live.view(&new, new.asks.effective));
        let cluster = live.snapshot().clone();
        let mut board = Board::default();
        board.grow(cluster.width());
        for (i, n) in self.nodes.iter().enumerate() {
            let Some(head) = n.head else { continue };
            let released: i64 = gone
                .iter()
                .filter(|p| self.node_of(&self.pods[**p]) == i)
                .map(|p| released(&self.pods[*p]))
                .sum();
            let id = cluster.find_node(&format!("n{i}")).expect("it was added").id;
            board.head[0][id.index()] = head * CORE + released;
        }
        Built { cluster, board, new }
    }

    fn in_order(&self, gone: &[usize]) -> Built {
        let all = |n: usize| (0..n).collect::<Vec<_>>();
        self.build(gone, &all(self.nodes.len()), &all(self.pods.len()))
    }

    fn plan(&self, built: &Built) -> Named {
        let input = built.input(self.load);
        let releases = |p: &PodView, _: NodeId| {
            let i: usize = p.key.name[1..].parse().expect("pods are numbered");
            Load::new(released(&self.pods[i]), 0)
        };
        named(
            &built.cluster,
            preempt(&input, &built.new, &self.budgets(), Some(&releases), &mut Memo::default()),
        )
    }

    fn budgets(&self) -> Vec<Budget> {
        self.budgets.iter().map(|(app, allowed)| budget(selector(&format!("app={app}")), *allowed)).collect()
    }

    /// The rule a node fails when some pods are gone.
    fn rule(&self, node: usize, gone: &[usize]) -> Option<Filter> {
        let built = self.in_order(gone);
        let input = built.input(self.load);
        let at = built.cluster.find_node(&format!("n{node}")).expect("it was added").id.index();
        let ready = prepare(&input, &built.new);
        let mut places = Places::default();
        local::check(&input, &built.new, &ready, at)
            .or_else(|| spread::Hard::new(&input, &built.new, &ready, &mut places).check(at))
            .or_else(|| apart::Hard::new(&input, &built.new, &ready, &mut places).check(at))
    }

    /// The same world with what was promised to pods that go before the new one given to them, on one node; or with nothing
    /// promised to anybody.
    fn as_if(&self, given: Option<usize>) -> Self {
        let mut out = self.clone();
        for at in 0..self.pods.len() {
            let goes_first = self.pods[at].priority >= self.new.priority;
            let here = given == Some(self.node_of(&self.pods[at]));
            let pod = &mut out.pods[at];
            if pod.promised && goes_first && here {
                pod.promised = false;
            } else if pod.promised {
                // As good as not there: of no use to anybody, and in nobody's way.
                *pod = Pod { promised: true, priority: i32::MIN, ..pod.clone() };
            }
        }
        out
    }

    /// The pods of a node that may go, the most important first.
    fn lower(&self, node: usize) -> Vec<usize> {
        let may_go = |i: &usize| {
            let p = &self.pods[*i];
            !p.promised && self.node_of(p) == node && p.priority < self.new.priority
        };
        let mut out: Vec<usize> = (0..self.pods.len()).filter(may_go).collect();
        out.sort_by_key(|i| (-self.pods[*i].priority, self.pods[*i].started.unwrap_or(i64::MAX), *i));
        out
    }

    /// Of pods that go in this order: those that overdraw a budget.
    fn overdrawing(&self, pods: &[usize]) -> Vec<usize> {
        let over = |n: usize| {
            self.budgets.iter().any(|(app, allowed)| {
                let before = pods[..=n].iter().filter(|i| self.pods[**i].app == *app).count();
                self.pods[pods[n]].app == *app && i64::try_from(before).expect("few pods") > *allowed
            })
        };
        (0..pods.len()).filter(|n| over(*n)).map(|n| pods[n]).collect()
    }

    /// Victims, the least important first, and how many overdraw a budget.
    fn victims(&self, node: usize) -> Option<(Vec<usize>, usize)> {
        let lower = self.lower(node);
        if lower.is_empty() || self.rule(node, &lower).is_some() {
            return None;
        }
        let overdrawing = self.overdrawing(&lower);
        let mut gone = lower.clone();
        let (first, then): (Vec<usize>, Vec<usize>) = lower.iter().partition(|i| overdrawing.contains(i));
        for i in first.into_iter().chain(then) {
            let fewer: Vec<usize> = gone.iter().copied().filter(|g| *g != i).collect();
            if self.rule(node, &fewer).is_none() {
                gone = fewer;
            }
        }
        gone.reverse();
        let violations = gone.iter().filter(|i| overdrawing.contains(i)).count();
        Some((gone, violations))
    }

    /// The plan, by trying everything and striking out what loses, one question after the other.
    fn slow(&self) -> Named {
        let all = 0..self.nodes.len();
        let rules: Option<Vec<Filter>> = all.clone().map(|n| self.rule(n, &[])).collect();
        let rules = rules?;
        let mut left: Vec<(usize, Vec<usize>, usize)> = all
            .filter(|n| rules[*n].yields_to_eviction())
            .filter_map(|n| self.victims(n).map(|(gone, violations)| (n, gone, violations)))
            .collect();
        let considered = left.len();
        let priority = |i: &usize| i64::from(self.pods[*i].priority);
        let questions: [Question<'_>; 5] = [
            &|_, violations| i64::try_from(violations).expect("few"),
            &|gone, _| gone.iter().map(priority).max().unwrap_or(0),
            &|gone, _| gone.iter().map(|i| priority(i) + (1 << 31)).sum(),
            &|gone, _| i64::try_from(gone.len()).expect("few"),
            &|gone, _| {
                let most = gone.iter().map(priority).max();
                let of_most = gone.iter().filter(|i| Some(priority(i)) == most);
                -of_most.map(|i| self.pods[*i].started.unwrap_or(i64::MAX)).min().unwrap_or(0)
            },
        ];
        for ask in questions {
            let least = left.iter().map(|(_, gone, violations)| ask(gone, *violations)).min();
            left.retain(|(_, gone, violations)| Some(ask(gone, *violations)) == least);
        }
        let (node, gone, violations) = left.first()?;
        let names = gone.iter().map(|i| format!("p{i}")).collect();
        let count = |n: usize| u32::try_from(n).expect("few");
        Some((format!("n{node}"), names, count(*violations), count(considered)))
    }
}

/// Half of what a pod is expected to use surely goes with it.
fn released(pod: &Pod) -> i64 {
    i64::from(pod.cpu) * CORE / 2
}

impl Built {
    fn input(&self, load: bool) -> Input<'_> {
        Input { board: load.then_some(&self.board), ..Input::new(&self.cluster) }
    }
}

fn numbers(names: &[String]) -> Vec<usize> {
    names.iter().map(|n| n[1..].parse().expect("all are numbered")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_node_has_to_do_with_the_pods_it_is_promised_to_and_without_them(scene in scenes()) {
        let scene = Scene { load: false, ..scene };
        for node in 0..scene.nodes.len() {
            let (with, without) = (scene.as_if(Some(node)).rule(node, &[]), scene.as_if(None).rule(node, &[]));
            prop_assert_eq!(scene.rule(node, &[]), with.or(without), "n{}", node);
        }
    }

    #[test]
    fn a_plan_is_what_the_slow_way_finds(scene in scenes()) {
        prop_assert_eq!(scene.plan(&scene.in_order(&[])), scene.slow());
    }

    #[test]
    fn a_plan_helps_spares_whom_it_can_and_touches_nobody_above(scene in scenes()) {
        let Some((node, victims, violations, _)) = scene.plan(&scene.in_order(&[])) else { return Ok(()) };
        let (node, victims) = (numbers(&[node])[0], numbers(&victims));
        prop_assert_eq!(scene.rule(node, &victims), None, "the pod fits when they are gone");
        for victim in &victims {
            prop_assert!(scene.pods[*victim].priority < scene.new.priority);
            let fewer: Vec<usize> = victims.iter().copied().filter(|v| v != victim).collect();
            prop_assert!(scene.rule(node, &fewer).is_some(), "p{victim} went for nothing");
        }
        // If anywhere enough could go without overdrawing a budget, nobody does.
        let painless = (0..scene.nodes.len()).any(|n| {
            let lower = scene.lower(n);
            let overdrawing = scene.overdrawing(&lower);
            let free: Vec<usize> = lower.iter().copied().filter(|i| !overdrawing.contains(i)).collect();
            let curable = scene.rule(n, &[]).is_some_and(Filter::yields_to_eviction);
            // Those who overdraw are put back one by one, so the pod must fit with none of them, too.
            curable && scene.rule(n, &lower).is_none() && scene.rule(n, &free).is_none()
        });
        prop_assert!(!painless || violations == 0);
    }

    #[test]
    fn a_plan_does_not_depend_on_who_came_first(
        (scene, nodes, pods) in scenes().prop_flat_map(|s| {
            let order = |n: usize| Just((0..n).collect::<Vec<usize>>()).prop_shuffle();
            let (nodes, pods) = (order(s.nodes.len()), order(s.pods.len()));
            (Just(s), nodes, pods)
        }),
    ) {
        let shuffled = scene.build(&[], &nodes, &pods);
        prop_assert_eq!(scene.plan(&scene.in_order(&[])), scene.plan(&shuffled));
    }
}
